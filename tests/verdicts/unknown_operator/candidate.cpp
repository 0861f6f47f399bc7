// kernelseek: operator=rmsnorn
