// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The program of docs/tasks/fine_tuning.md: prompts and answers from JSON lines.

#include <penstock/codec/json_field.hpp>
#include <penstock/penstock.hpp>
#include <penstock/source/lines.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

namespace ps = penstock;

// Stands for your tokenizer: a token per byte. It is called by several threads at once.
void tokenize(std::string_view text, std::vector<std::int32_t>& into) {
  for (const char c : text) into.push_back(static_cast<unsigned char>(c));
}

int main(int argc, char** argv) {
  try {
    using line = ps::json_fields<ps::json_field<"prompt", std::string_view>,
                                 ps::json_field<"completion", std::string_view>>;
    using sample = ps::record<ps::field<"tokens", std::vector<std::int32_t>>,
                              ps::field<"labels", std::vector<std::int32_t>>>;

    const auto loader = ps::lines(argc > 1 ? argv[1] : "train.jsonl") | ps::shuffle(ps::seed(7)) |
                        ps::decode<line> | ps::map([](const auto& row) {
                          std::vector<std::int32_t> tokens;
                          tokenize(ps::get<"prompt">(row), tokens);
                          const std::size_t prompt = tokens.size();
                          tokenize(ps::get<"completion">(row), tokens);
                          std::vector<std::int32_t> labels = tokens;  // the loss ignores the prompt
                          for (std::size_t i = 0; i < prompt; ++i) labels[i] = -100;
                          return sample(std::move(tokens), std::move(labels));
                        }) |
                        ps::batch(2, ps::pad_to_longest);

    auto run = loader.open();
    for (auto&& batch : run.epoch(0)) {
      const auto tokens = get<"tokens">(batch);  // (2, longest), with lengths() and mask()
      std::size_t real = 0;
      for (const auto length : tokens.lengths()) real += length;
      std::printf("%zu samples, %zu tokens of %zu with padding\n", batch.size(), real,
                  tokens.shape()[0] * tokens.shape()[1]);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
