// What the leak lint looks for, as one table of patterns over words.
//
// A pattern is a row of parts with a space between them; each part matches one word of the text:
//   word        the word itself           a|b   either          wo*   a word that begins with wo
//   #           a number                  _     any word        ^     the beginning of a sentence (or of a clause after
//   ..          up to four words          ?     a question mark       ; : or then/and/now/next/just)
// Texts are compared in lower case, split at spaces, hyphens, underscores and punctuation; n't becomes the word "not".
#pragma once

#include <array>
#include <string_view>

namespace ks::steering {

/// What kind of leak a pattern shows.
enum class Leak { kConstruct, kTechnique, kNumber, kSuggestion, kOrder, kAnswer, kPraise };

struct LintPattern {
  Leak leak = Leak::kConstruct;
  std::string_view pattern;
};

// clang-format off
inline constexpr LintPattern kLintPatterns[] = {
    // Constructs of machines and programs: a question that names one has chosen the place to look.
    {Leak::kConstruct, "thread|threads|threadblock*|warp*|lane|lanes|simt|cta|ctas|wave|waves|wavefront*"},
    {Leak::kConstruct, "sm|sms|multiprocessor*|core|cores|hyperthread*|smt|numa|socket|sockets|cpu|cpus"},
    {Leak::kConstruct, "register|registers|spill*|maxrregcount|occupancy|occupy"},
    {Leak::kConstruct, "smem|tmem|sram|dram|hbm|vram|scratchpad"},
    {Leak::kConstruct, "memory|bandwidth|latency|latencies|traffic|throughput|coalesc*|uncoalesc*|misalign*|align*"},
    {Leak::kConstruct, "l1|l2|l3|cache*|caching|tlb|evict*|prefetch*|preload*"},
    {Leak::kConstruct, "bank|banks conflict*"},
    {Leak::kConstruct, "swizzl*|layout|layouts|stride|strides|strided|leading dimension*"},
    {Leak::kConstruct, "tile|tiles|tiled|tiling|chunk|chunks|chunked|chunking"},
    {Leak::kConstruct, "block|blocks|blocking|blocked"},
    {Leak::kConstruct, "barrier*|mbarrier*|syncthreads|sync|synchronis*|synchroniz*|fence|fences|mutex*|lock|locks|semaphore*"},
    {Leak::kConstruct, "tma|wgmma|mma|hmma|imma|tcgen*|ldmatrix|stmatrix|ldg|sts|lds"},
    {Leak::kConstruct, "async|asynchronous*|descriptor|descriptors|multicast*|cluster|clusters|warpgroup*"},
    {Leak::kConstruct, "tensor core|cores|map|maps"},
    {Leak::kConstruct, "simd|avx*|sse|amx|neon|fma|ffma|vector|vectors|vectoris*|vectoriz*|scalar|intrinsic*"},
    {Leak::kConstruct, "sass|ptx|assembly|assembler|opcode*|instruction|instructions|disassembl*|compiler|nvcc|gcc|clang|linker"},
    {Leak::kConstruct, "ncu|nsys|nsight|perf|vtune|cuobjdump|nvdisasm"},
    {Leak::kConstruct, "pipeline*|pipelin*|stage|stages|staging|staged|buffer*|producer*|consumer*|pingpong"},
    {Leak::kConstruct, "ping pong"},
    {Leak::kConstruct, "epilogue*|prologue*|softmax|exp|exp2|exponential*|exponent|tanh|rescal*|accumulat*|reduction*|logsumexp"},
    {Leak::kConstruct, "atomic*|semaphor*|spinlock*|openmp|pthread*|cuda|triton|cutlass|cute"},
    {Leak::kConstruct, "loop|loops|inner|outermost|innermost|branch|branches|branching|diverge*|predicat*|template*|macro*"},
    {Leak::kConstruct, "mask|masks|masked|masking|scheduler|schedulers|schedule|schedules|scheduling|persistent|persistence"},
    {Leak::kConstruct, "launch|launches|launched|launching|fp8|fp16|fp32|fp64|bf16|e4m3|e5m2|int8|float|floats"},
    {Leak::kConstruct, "precision|quantis*|quantiz*|dequant*|denormal*|pointer*|modulo|reciprocal*|division|divisions|bitshift*"},
    {Leak::kConstruct, "stall|stalls|stalled|stalling|dependency|dependencies|hazard*|load|loads|loading|stores"},
    {Leak::kConstruct, "issue slot|slots"},
    {Leak::kConstruct, "index|indices|address|addresses|addressing|offset|offsets"},
    {Leak::kConstruct, "page table|tables|size|index|indices"},
    {Leak::kConstruct, "huge|pinned page|pages|memory"},
    {Leak::kConstruct, "key|query|value|head tile*|row|rows|tensor*|load*|axis|matrix"},
    {Leak::kConstruct, "matrix product|products|multiply|multiplication|instruction*|unit|units|tile*"},
    {Leak::kConstruct, "second|first|two|both product|products"},
    {Leak::kConstruct, "o2|o3|ofast|flag|flags|pragma*|march|optimisation level"},
    {Leak::kConstruct, "fast math|path|exp*"},
    {Leak::kConstruct, "lookup|hash table|tables"},
    {Leak::kConstruct, "false sharing"},
    {Leak::kConstruct, "partial sum|sums|result|results"},
    {Leak::kConstruct, "head dim|dims|dimension"},

    // Techniques: what could be done to a program.
    {Leak::kTechnique, "unroll*|fuse|fused|fuses|fusing|fusion|hoist*|inline|inlined|inlining|memois*|memoiz*"},
    {Leak::kTechnique, "overlap|overlaps|overlapped|overlapping|interchange*|reorder*|transpos*|pad|padded|padding|pack|packed|packing"},
    {Leak::kTechnique, "precomput*|recomput*|preallocat*|parallelis*|paralleliz*|specialis*|specializ*|autotun*"},
    {Leak::kTechnique, "merge|merged|merging|compress|compressed|compressing|approximat*|truncat*|broadcast*"},
    {Leak::kTechnique, "split|splits|splitting|splitk|streamk|batching|batched"},
    {Leak::kTechnique, "stream k"},
    {Leak::kTechnique, "skip|skipped|skipping|skips|elide*|bypass*"},
    {Leak::kTechnique, "two|single|one|second|extra pass"},
    {Leak::kTechnique, "reload*|refetch*|redundant*|superfluous|unnecessary"},
    {Leak::kTechnique, "hardcod*|fallback*"},
    {Leak::kTechnique, "hard cod*"},
    {Leak::kTechnique, "special cas*"},
    {Leak::kTechnique, "fast|slow path|paths"},
    {Leak::kTechnique, "pin|pinned|pinning .. core|cores|thread|threads"},
    {Leak::kTechnique, "double|triple|multi buffer*"},
    {Leak::kTechnique, "move|moved|moving|keep|kept|hold|held .. register|registers|shared|memory|loop"},
    {Leak::kTechnique, "combine|combined|combining .. block*|partial|results|step"},

    // Numbers to try: a figure where a setting would stand.
    {Leak::kNumber, "# by|x #"},
    {Leak::kNumber, "# stages|stage|threads|thread|warps|warp|tiles|tile|blocks|block|splits|split|keys|key|registers|bytes|byte|chunks|lanes|elements|slots"},
    {Leak::kNumber, "# instead|rather of|than #"},
    {Leak::kNumber, "# .. instead|rather of|than #"},
    {Leak::kNumber, "try|use|set|choose|pick|take .. #"},
    {Leak::kNumber, "raise|raising|lower|lowering|increase|decrease|reduce|bring|change|changing .. to|under|below|by #"},
    {Leak::kNumber, "factor|size|width|depth|count of|at #"},
    {Leak::kNumber, "size|width|depth|length|tile|tiles|chunk|block .. at|of|to # instead|rather|or"},
    {Leak::kNumber, "pad|padded|padding .. to #"},
    {Leak::kNumber, "# # and|or #"},
    {Leak::kNumber, "# row|rows|column|columns or|instead|rather"},

    // Suggestions, whatever their form.
    {Leak::kSuggestion, "have|has|had you|we|anyone ever|already|not|yet tried|considered|thought|looked|checked|attempted|experimented|explored"},
    {Leak::kSuggestion, "have|has|had you|we|anyone tried|considered|thought|looked|attempted|experimented|explored|checked"},
    {Leak::kSuggestion, "did you|we try|consider|remember|forget|think|check|attempt"},
    {Leak::kSuggestion, "why not|don't"},
    {Leak::kSuggestion, "why do|does|did|is|are|was|were|would not"},
    {Leak::kSuggestion, "how|what about"},
    {Leak::kSuggestion, "what if you|we|one|the|it|each|every|all|this|that"},
    {Leak::kSuggestion, "what would|might|could happen if|with|when"},
    {Leak::kSuggestion, "what happens if|when you|we|one"},
    {Leak::kSuggestion, "^ should we|you|it|the|they|one|this|that"},
    {Leak::kSuggestion, "^ should|would|could|can|is|are|does|do|did|has|have|was|were|might|must not"},
    {Leak::kSuggestion, "^ could|can|would|will you|we|one"},
    {Leak::kSuggestion, "would|could|might it help|be|hurt|pay|make sense"},
    {Leak::kSuggestion, "would|could|might|may .. help|hurt|suffice|speed|improve|hide|avoid|fix|remove|reduce|solve|save|raise|win"},
    {Leak::kSuggestion, "would|could|might it|that be worth|better|possible|faster|quicker|enough|an"},
    {Leak::kSuggestion, "it|this|that|there might|may|could|would|should be|help|pay"},
    {Leak::kSuggestion, "you|we|one should|could|might|must|can|may|need|ought"},
    {Leak::kSuggestion, "you|we|one had better|have to|would want|will want|will need"},
    {Leak::kSuggestion, "i would|d|suggest|recommend|suspect|think|believe|guess|bet|propose|advise|expect"},
    {Leak::kSuggestion, "my advice|guess|suggestion|hunch|bet"},
    {Leak::kSuggestion, "perhaps|maybe|possibly|presumably|probably"},
    {Leak::kSuggestion, "please|kindly"},
    {Leak::kSuggestion, "let us|me|s"},
    {Leak::kSuggestion, "lets|gonna"},
    {Leak::kSuggestion, "make|be sure|certain that|to|the|you"},
    {Leak::kSuggestion, "one way|option|idea|possibility|approach would|is|might|could"},
    {Leak::kSuggestion, "another|a better|good|simple|different way|option|idea|approach is|would|might"},
    {Leak::kSuggestion, "what|who prevents|stops|keeps|hinders|holds you|us|the"},
    {Leak::kSuggestion, "what stands in the way"},
    {Leak::kSuggestion, "is there a|any reason not|why|to|that"},
    {Leak::kSuggestion, "where is|are the|your missing"},
    {Leak::kSuggestion, "the missing .. is|are|was"},
    {Leak::kSuggestion, "which|what of|one|is|are better|faster|quicker|best"},
    {Leak::kSuggestion, "which one is|of"},
    {Leak::kSuggestion, "which .. would|is|be better|quicker|faster"},
    {Leak::kSuggestion, "is|would .. be better|faster|quicker than"},
    {Leak::kSuggestion, "better to|off"},
    {Leak::kSuggestion, ", is|are|was|were|has|have|does|do|did|would|could|should it|that|you|we|they ?"},
    {Leak::kSuggestion, "is|are|has|does|do|would|could|should|did|have not it|you|we|they ?"},
    {Leak::kSuggestion, ", right|correct|no|ok|okay|yes|agreed ?"},
    {Leak::kSuggestion, "worth a|the|trying|doing|padding|looking|checking|exploring"},
    {Leak::kSuggestion, "can .. be changed|moved|avoided|removed|dropped|improved|reduced|skipped|shared|reused|done away"},
    {Leak::kSuggestion, "could .. be moved|avoided|removed|dropped|replaced|improved|reduced|skipped|shared|reused|issued|handled|done|stored|kept|folded|hidden|made"},
    {Leak::kSuggestion, "how much|many would|could you|we win|save|gain"},
    {Leak::kSuggestion, "^ do|does|did|would|could|can .. explain|account"},
    {Leak::kSuggestion, "is it|this|that the .. that costs|takes|slows|limits|makes|hurts|eats|keeps|causes|cost|take|make"},
    {Leak::kSuggestion, "could|might it|this|that be the|that|because"},
    {Leak::kSuggestion, "could|might|can .. be the|a reason|cause|problem|culprit|bottleneck|limit|limiter"},
    {Leak::kSuggestion, "^ is|are .. slow|slower|wrong|low|high|bad because"},
    {Leak::kSuggestion, "looks|seems|sounds to me|like|as"},
    {Leak::kSuggestion, "from the|a reference|rival to|into"},

    // Orders: a bare verb at the beginning of a sentence.
    {Leak::kOrder, "^ add|adopt|align|allocate|apply|avoid|begin|borrow|bring|build|bump|cache|change|check|choose|clean|combine"},
    {Leak::kOrder, "^ commit|compare|compile|compute|consider|convert|copy|cut|declare|decrease|delete|disable|double|drop"},
    {Leak::kOrder, "^ do this|that|it|so"},
    {Leak::kOrder, "^ do the same"},
    {Leak::kOrder, "^ eliminate|enable|ensure|exchange|expand|exploit|factor|find|fix|focus|fold|forget|fuse|give|go|group|halve"},
    {Leak::kOrder, "^ hide|hoist|ignore|implement|improve|increase|inline|insert|inspect|interleave|invert|join|keep|launch|leave|limit"},
    {Leak::kOrder, "^ load|look|lower|make|map|mark|measure|merge|move|note|open|optimise|optimize|order|pack|pad|partition|pick|pin"},
    {Leak::kOrder, "^ pipeline|place|port|precompute|prefer|prefetch|preload|process|profile|pull|push|put|raise|read|rebuild|recompile"},
    {Leak::kOrder, "^ record|reduce|refactor|remember|remove|rename|reorder|repeat|replace|rerun|reset|restore|restructure|return|reuse|revert"},
    {Leak::kOrder, "^ rewrite|run|save|schedule|separate|set|shift|shrink|simplify|skip|sort|specialise|specialize|split|start|stay|stop|store"},
    {Leak::kOrder, "^ swap|switch|take|test|think|transpose|trim|try|tune|turn|undo|unroll|update|use|vectorise|vectorize|verify|wait|work|wrap|write"},
    {Leak::kOrder, "^ do not|never"},
    {Leak::kOrder, "have a look|go|try"},
    {Leak::kOrder, "go ahead|back|for|with and|to|the"},
    {Leak::kOrder, "^ .. and|then try|measure|optimise|optimize|use|add|remove|see|run|go"},
    {Leak::kOrder, "next|first thing|step is|to"},

    // Answers: a cause, a remedy or a verdict that was for the agent to find.
    {Leak::kAnswer, "the|your|real|main|only problem|cause|reason|fix|answer|trick|bottleneck|culprit|bug|issue|solution|trouble|remedy|mistake|error|key is|was|lies|comes|with"},
    {Leak::kAnswer, "that|this|it|which is|was the|a problem|cause|reason|mistake"},
    {Leak::kAnswer, "the|a real|true|actual problem|cause|reason|limit|bottleneck"},
    {Leak::kAnswer, "is|are|was|were slow|slower|wrong|fast|faster because|since|as"},
    {Leak::kAnswer, "is|are|was|were the bottleneck|culprit|limiter|fix|trick|bug"},
    {Leak::kAnswer, "needs|requires|deserves|wants a|an|its separate|own|new|different|dedicated"},
    {Leak::kAnswer, "is|are|was|were bound|limited|caused|dominated|starved|starving|hampered by"},
    {Leak::kAnswer, "you|we are limited|bound"},
    {Leak::kAnswer, "compute|memory|bandwidth|latency|issue bound|limited"},
    {Leak::kAnswer, "too|not few|many|small|large|enough big|narrow|wide|deep|blocks|tiles|work"},
    {Leak::kAnswer, "^ .. grid .. too|has few|small"},
    {Leak::kAnswer, "wins|win|gains|saves|loses|gives|get|got because|by|ten|# .. percent|overlapping|splitting"},
    {Leak::kAnswer, "gets there|it by"},
    {Leak::kAnswer, "waste|wastes|wasted|wasting"},
    {Leak::kAnswer, "that|this alone gives|explains|costs|saves"},
    {Leak::kAnswer, "disturbs|disturb|starves|serialises|serializes the|your"},

    // Praise and approval: they tell the agent which of its guesses was right.
    {Leak::kPraise, "good|great|nice|excellent|perfect|brilliant|fantastic|amazing|awesome|impressive|clever job|work|catch|find|idea|result|results|progress|move|start|one|step|thinking|now|you|now"},
    {Leak::kPraise, "^ good|great|nice|excellent|perfect|brilliant|fantastic|amazing|awesome|impressive|bravo|congratulations|agreed|exactly|yes|correct"},
    {Leak::kPraise, "well|nicely done"},
    {Leak::kPraise, "keep it up|going"},
    {Leak::kPraise, "you are|were right|correct|close|nearly|almost"},
    {Leak::kPraise, "exactly|quite|absolutely|that right|is right"},
    {Leak::kPraise, "on the right track"},
    {Leak::kPraise, "big|huge|great step|win|improvement forward"},
    {Leak::kPraise, "the|our goal is near|close"},
    {Leak::kPraise, "nearly|almost there|done"},
};
// clang-format on

/// Texts that are allowed as a whole: what the neutral questioner says.
inline constexpr std::array<std::string_view, 1> kNeutralTexts = {"Continue towards the goal."};

}  // namespace ks::steering
