// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 44: text to tokens on one core, with a vocabulary of GPT-2's size and its way to split words, and one
// of Llama 3's, against Hugging Face's tokenizers and tiktoken on the same texts.

#include "support/harness.hpp"

#include <penstock/codec/bpe.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace {

struct result {
  double rate = 0;  ///< megabytes a second; 0: it failed
  std::uint64_t tokens = 0;
};

[[nodiscard]] result of_program(const std::string& command) {
  result found;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return found;
  unsigned long long tokens = 0;
  if (std::fscanf(pipe, "%lf %llu", &found.rate, &tokens) != 2) found.rate = 0;
  found.tokens = tokens;
  ::pclose(pipe);
  return found;
}

/// All texts once without a clock, as with the others, and then with one.
[[nodiscard]] result of_bpe(const ps::bpe& tokenizer, const std::vector<std::string_view>& texts) {
  ps::bpe::scratch scratch;
  result found;
  std::size_t bytes = 0;
  for (int round = 0; round < 2; ++round) {
    const double begin = bench::seconds_now();
    found.tokens = bytes = 0;
    for (const std::string_view text : texts) {
      const auto tokens = tokenizer.decode(text, scratch);
      bench::escape(tokens.data());
      found.tokens += tokens.size();
      bytes += text.size();
    }
    found.rate = static_cast<double>(bytes) / (bench::seconds_now() - begin) / 1e6;
  }
  return found;
}

void measure(const bench::options& o) {
  const bench::row rows[] = {{"44a", "tokens of 50,257, GPT-2's words / tokenizers", 2},
                             {"44b", "tokens of 50,257, GPT-2's words / tiktoken", 1},
                             {"44c", "tokens of 128,256, Llama 3's words / tokenizers", 2},
                             {"44d", "tokens of 128,256, Llama 3's words / tiktoken", 1}};
  if (std::ranges::none_of(rows, [&](const bench::row& one) { return o.wants(one.id); })) return;
  const char* const python = std::getenv("BENCH_TOKENISE_PYTHON");
  const char* const script = std::getenv("BENCH_TOKENISE_SCRIPT");
  if (python == nullptr || script == nullptr) {
    for (const bench::row& one : rows)
      bench::print_skipped(
          one,
          "BENCH_TOKENISE_PYTHON is not set; run.sh sets it where tokenizers and tiktoken can be "
          "installed");
    return;
  }
  const std::filesystem::path folder = o.dir / "tokenise";
  std::filesystem::create_directories(folder);
  const auto command = [&](const std::string& task) {
    return "'" + std::string(python) + "' '" + script + "' " + task + " '" + folder.string() + "' ";
  };
  const std::string root = std::filesystem::path(script).parent_path().parent_path().parent_path().string();
  const std::string list = (folder / "list").string();
  const std::string find =
      "find '" + root + "/include' '" + root + "/tests' '" + root +
      "/docs' /usr/share/doc /usr/share/perl /usr/lib/python3 -type f "
      "\\( -name '*.[hic]pp' -o -name '*.md' -o -name '*.txt' -o -name '*.p[lmy]' -o -name "
      "copyright \\) 2>/dev/null | LC_ALL=C sort | head -n " +
      (o.quick ? "300" : "4000") + " >'" + list + "'; ";
  if (!std::filesystem::exists(folder / "llama.tiktoken") &&
      std::system((find + command("prepare") + "'" + list + "'").c_str()) != 0)
    throw std::runtime_error("the tokenizers could not be trained");

  std::ifstream in(folder / "texts", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::string_view> texts;
  for (std::string_view rest = all;;) {
    const std::size_t end = std::min(rest.find('\x1e'), rest.size());
    texts.push_back(rest.substr(0, end));
    if (end == rest.size()) break;
    rest.remove_prefix(end + 1);
  }
  for (const bench::row& one : rows) {
    if (!o.wants(one.id)) continue;
    const std::string name = one.id < "44c" ? "gpt" : "llama";
    const bool other = one.id == "44b" || one.id == "44d";
    const ps::bpe tokenizer =
        other ? ps::bpe::from_tiktoken((folder / (name + ".tiktoken")).string(),
                                       name == "gpt" ? ps::token_patterns::gpt2 : ps::token_patterns::llama3)
              : ps::bpe::from_file((folder / (name + ".json")).string());
    std::vector<double> ratios, ours, theirs;
    for (int pair = 0; pair < std::min(o.pairs, 11); ++pair) {
      const result mine = of_bpe(tokenizer, texts);
      const result its = of_program(command(other ? "tiktoken" : "tokenizers") + name);
      if (its.rate <= 0) break;
      if (mine.tokens != its.tokens) throw std::runtime_error("row " + one.id + ": the tokens differ");
      ours.push_back(mine.rate);
      theirs.push_back(its.rate);
      ratios.push_back(mine.rate / its.rate);
    }
    if (ratios.empty()) {
      bench::print_skipped(one, "the other library failed");
      continue;
    }
    char notes[160];
    std::snprintf(notes, sizeof notes, "ours %.3g MB/s, %s %.3g MB/s, %zu pairs, %zu texts of %.3g MB",
                  bench::quantile(ours, 0.5), other ? "tiktoken" : "tokenizers", bench::quantile(theirs, 0.5),
                  ratios.size(), texts.size(), static_cast<double>(all.size()) / 1e6);
    bench::print_row(one, bench::quantile(ratios, 0.25), bench::quantile(ratios, 0.5), notes);
  }
  if (!o.keep) std::filesystem::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    measure(bench::read_options(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
