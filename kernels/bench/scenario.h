// One row of an attention grid, read from its table: the lengths written out, the mask and the layout taken apart.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ks::bench {

struct AttentionRow {
  int id;
  std::string category, name, dtype;
  int batch, query_heads, kv_heads, key_dim, value_dim;
  std::vector<int> rows, keys;  ///< per member
  int window_left = -1, window_right = -1;
  float softcap = 0.0f;
  bool sink = false;
  bool packed = false;   ///< rows lie packed
  bool cache = false;    ///< contiguous cache
  int page_size = 0;     ///< 0: not paged
  bool latent = false;   ///< MLA: values are the first columns of the keys
  bool appends = false;  ///< the last rows' keys are appended by the call
  int rotary_style = 0;  ///< as KS_ROTARY_*
  int rotary_dim = 0;
  bool leftpad = false;
  float scale = 0.0f;

  bool eight_bit_keys() const { return dtype.find("e4m3") != std::string::npos; }
  bool eight_bit_query() const { return dtype == "e4m3"; }
};

inline std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, by);) parts.push_back(part);
  return parts;
}

inline bool has(const std::string& text, const char* word) {
  return text.find(word) != std::string::npos;
}

/// "2048+8x1", "1,5,129", "64..505 step 7", "16..512 pseudo-random", "9x~1024", "577" (for every member).
inline std::vector<int> parse_lengths(const std::string& text, int batch) {
  std::vector<int> lengths;
  uint32_t random = 12345;
  if (has(text, "step")) {
    for (int n = 64; n <= 505; n += 7) lengths.push_back(n);
  } else if (has(text, "pseudo-random")) {
    int least = 16, most = 512;
    std::sscanf(text.c_str(), "%d..%d", &least, &most);
    for (int b = 0; b < batch; ++b) {
      lengths.push_back(least + (random = random * 1664525u + 1013904223u) / 65536 % (most - least + 1));
    }
  } else {
    for (const std::string& comma : split(text, ',')) {
      for (const std::string& term : split(comma, '+')) {
        const size_t times = term.find('x');
        const int count = times == std::string::npos ? 1 : std::stoi(term);
        std::string length = times == std::string::npos ? term : term.substr(times + 1);
        const bool about = length[0] == '~';
        if (about) length.erase(0, 1);
        for (int i = 0; i < count; ++i) {
          lengths.push_back(std::stoi(length) - (about ? (random = random * 1664525u + 1013904223u) / 65536 % 20 : 0));
        }
      }
    }
  }
  if (lengths.size() == 1) lengths.assign(batch, lengths[0]);
  if (static_cast<int>(lengths.size()) != batch) throw std::runtime_error("lengths do not fit the batch: " + text);
  return lengths;
}

inline AttentionRow parse_row(const std::string& line) {
  const std::vector<std::string> f = split(line, '\t');
  AttentionRow row;
  row.id = std::stoi(f[0]), row.category = f[1], row.name = f[2], row.dtype = f[3], row.batch = std::stoi(f[4]);
  row.query_heads = std::stoi(f[5]), row.kv_heads = std::stoi(split(f[5], '/')[1]);
  row.key_dim = std::stoi(f[8]), row.value_dim = std::stoi(split(f[8], '/')[1]);
  row.rows = parse_lengths(f[6], row.batch);
  if (f[7] == "=q") {
    row.keys = row.rows;
  } else if (has(f[7], "every 5th")) {
    row.keys = row.rows;
    for (int b = 0; b < row.batch; ++b) row.keys[b] = b % 5 == 0 || b + 1 == row.batch ? 0 : row.keys[b];
  } else {
    row.keys = parse_lengths(f[7], row.batch);
  }
  const std::string& mask = f[9];
  if (has(mask, "causal")) row.window_right = 0;
  if (has(mask, "win(")) std::sscanf(mask.c_str(), "win(%d,%d)", &row.window_left, &row.window_right);
  if (has(mask, "cap")) row.softcap = std::stof(mask.substr(mask.find("cap") + 3));
  row.sink = has(mask, "sink");
  const std::string& layout = f[10];
  row.packed = has(layout, "varlen");
  row.cache = has(layout, "contiguous");
  if (has(layout, "paged")) row.page_size = std::stoi(layout.substr(5));
  row.leftpad = has(layout, "leftpad");
  row.latent = row.key_dim > 512;
  row.appends = has(layout, "append");
  if (has(layout, "rotary")) {
    row.rotary_style = has(layout, "interleaved") ? 2 : 1;
    const size_t digits = layout.find_first_of("0123456789", layout.find("rotary"));
    row.rotary_dim = digits == std::string::npos ? row.key_dim : std::stoi(layout.substr(digits));
  }
  row.scale = f.size() > 11 && has(f[11], "1/12") ? 1.0f / 12 : 1.0f / std::sqrt(static_cast<float>(row.key_dim));
  return row;
}

inline std::vector<AttentionRow> read_grid(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::vector<AttentionRow> rows;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') rows.push_back(parse_row(line));
  }
  return rows;
}

}  // namespace ks::bench
