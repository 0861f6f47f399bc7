// What a candidate's binary may not contain, as data. A rule that refuses is about what no honest kernel needs; what
// some may need is only recorded.
#pragma once

#include <array>

namespace ks::evaluator {

/// Functions that a kernel never needs, with what they would be good for.
struct ForbiddenImport {
  const char* names;  ///< separated by spaces; one that ends in * stands for all that begin so
  const char* what;
};
inline constexpr std::array kForbiddenImports = {
    ForbiddenImport{"socket socketpair connect bind listen accept accept4 getaddrinfo gethostbyname* sendmsg recvmsg",
                    "talks over a network"},
    ForbiddenImport{"fork vfork clone clone3 posix_spawn* execl execle execlp execv execve execvp execvpe fexecve "
                    "system popen daemon",
                    "starts processes"},
    ForbiddenImport{"ptrace process_vm_readv process_vm_writev pidfd_open pidfd_getfd", "looks into other processes"},
    ForbiddenImport{"shm_open shm_unlink shmget shmat memfd_create mq_open sem_open",
                    "shares memory with other processes"},
    ForbiddenImport{"dlopen dlmopen dlsym dlvsym", "loads code at run time"},
    ForbiddenImport{"syscall", "makes system calls by number"},
    ForbiddenImport{"dl_iterate_phdr dlinfo _r_debug", "walks what else is loaded"},
    ForbiddenImport{"kill sigqueue tgkill setpgid setsid", "signals or leaves its process group"},
    ForbiddenImport{"seccomp* prctl unshare setns mount ioperm iopl bpf perf_event_open userfaultfd io_uring_*",
                    "changes what the kernel lets it do"},
    ForbiddenImport{"sched_setscheduler sched_setparam setpriority setrlimit prlimit",
                    "raises its own priority or limits"}};

/// Not refused, but said in the record.
inline constexpr ForbiddenImport kRecordedImports{
    "open openat open64 fopen fopen64 mmap mmap64 mprotect mremap sigaction signal atexit __cxa_thread_atexit_impl "
    "exit _exit "
    "clock_gettime gettimeofday getenv dladdr pthread_create timer_create setitimer",
    "uses"};

/// Libraries that a candidate may want from the system.
inline constexpr std::array kAllowedLibraries = {"libc.so.",       "libm.so.",    "libstdc++.so.", "libgcc_s.so.",
                                                 "libpthread.so.", "libgomp.so.", "libhwy.so.",    "libmvec.so.",
                                                 "librt.so.",      "libdl.so.",   "ld-linux-"};
inline constexpr const char* kCudaDriver = "libcuda.so.";

/// Names of the ABI that a candidate exports; every other ks_ name is ours.
inline constexpr std::array kRequiredExports = {"ks_abi_version", "ks_source_hash", "ks_sizes", "ks_plan", "ks_run"};
inline constexpr const char* kOptionalExport = "ks_plan_lengths";

/// Functions of the C library and of the drivers that a candidate must not define over: timers, memory, input and
/// output, threads.
inline constexpr std::array kShadowedNames = {"clock_gettime",  "clock_nanosleep",
                                              "gettimeofday",   "time",
                                              "clock",          "nanosleep",
                                              "malloc",         "calloc",
                                              "realloc",        "free",
                                              "posix_memalign", "aligned_alloc",
                                              "memcpy",         "memmove",
                                              "memset",         "memcmp",
                                              "mmap",           "munmap",
                                              "mprotect",       "read",
                                              "write",          "open",
                                              "close",          "poll",
                                              "send*",          "recv*",
                                              "exit",           "_exit",
                                              "abort",          "atexit",
                                              "sigaction",      "signal",
                                              "raise",          "getpid",
                                              "pthread_*",      "sem_*",
                                              "dlopen",         "dlsym",
                                              "dlclose",        "syscall",
                                              "__libc_*",       "__stack_chk_fail",
                                              "__cxa_throw",    "_Unwind_*",
                                              "omp_*",          "GOMP_*",
                                              "cuda*",          "cu*",
                                              "nvml*",          "cupti*"};

/// Marks of libraries that are compared against: a candidate that carries one is that library.
struct LibraryMark {
  const char* name;
  const char* mark;
};
inline constexpr std::array kLibraryMarks = {LibraryMark{"OpenBLAS", "openblas_get_config"},
                                             LibraryMark{"OpenBLAS", "openblas_set_num_threads"},
                                             LibraryMark{"OpenBLAS", "OPENBLAS_CORETYPE"},
                                             LibraryMark{"OpenBLAS", "cblas_sgemm"},
                                             LibraryMark{"a BLAS", "sgemm_kernel"},
                                             LibraryMark{"a BLAS", "bli_gemm"},
                                             LibraryMark{"oneDNN", "dnnl_primitive"},
                                             LibraryMark{"oneDNN", "ONEDNN_VERBOSE"},
                                             LibraryMark{"oneDNN", "N4dnnl4impl"},
                                             LibraryMark{"MKL", "mkl_serv_"},
                                             LibraryMark{"MKL", "mkl_blas_"},
                                             LibraryMark{"ONNX Runtime", "OrtGetApiBase"},
                                             LibraryMark{"ONNX Runtime", "N11onnxruntime"},
                                             LibraryMark{"XNNPACK", "xnn_create_"},
                                             LibraryMark{"PyTorch", "N2at6native"},
                                             LibraryMark{"cuDNN", "cudnnCreate"},
                                             LibraryMark{"cuBLAS", "cublasCreate"},
                                             LibraryMark{"cuBLASLt", "cublasLtMatmul"},
                                             LibraryMark{"FlashAttention", "CollectiveMainloopFwdSm90"},
                                             LibraryMark{"FlashAttention", "flash_fwd_kernel"},
                                             LibraryMark{"FlashAttention", "FlashAttnFwdSm"},
                                             LibraryMark{"FlashInfer", "N10flashinfer"},
                                             LibraryMark{"FlashMLA", "flash_fwd_splitkv_mla"}};

}  // namespace ks::evaluator
