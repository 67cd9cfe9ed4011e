// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Tunes a small transformer on conversations, {"messages": [{"role": "user", "content": "..."}, ...]} in each
// line of JSON files: a chat template, loss on the answers alone, batches of conversations of similar length.
// Killed at any moment, it goes on from its checkpoint.

#include "arguments.hpp"
#include "checkpoint_file.hpp"
#include "tiny_transformer.hpp"

#include <penstock/penstock.hpp>
#include <penstock/sequence.hpp>

#include <penstock/codec/bpe.hpp>
#include <penstock/codec/json.hpp>
#include <penstock/inspection/derive.hpp>
#include <penstock/source/lines.hpp>
#include <penstock/stage/bucket_by.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

const std::string usage =
    "finetune_instructions --conversations PATTERN --tokenizer FILE --checkpoint FOLDER [--epochs N] "
    "[--tokens N] "
    "[--buckets N] [--longest TOKENS] [--width N] [--rate R] [--workers N]";

/// The chat template: a line with the role, what was said, an empty line. A model learns what the assistant
/// says, and where it ends.
auto chat(const ps::bpe& tokenizer) {
  return ps::join_turns<std::uint32_t>(
      [tokenizer](const ps::json_value& line, ps::token_turns<std::uint32_t>& into) {
        for (const auto& message : line.at("messages")) {
          const auto role = message.at("role").get<std::string>();
          const bool answers = role == "assistant";
          into.add(tokenizer.encode(role + ":\n"));
          into.add(tokenizer.encode(message.at("content").get<std::string>() + "\n\n"), answers);
        }
      });
}

/// In each place the next token of its conversation if that is part of an answer, otherwise -100.
std::vector<std::int64_t> labels_of(const ps::padded_view<std::uint32_t>& tokens,
                                    const ps::padded_view<std::uint8_t>& answers) {
  const std::size_t longest = tokens.values().size() / tokens.size();
  std::vector<std::int64_t> labels(tokens.values().size(), -100);
  for (std::size_t row = 0; row < tokens.size(); ++row)
    for (std::size_t i = 0; i + 1 < tokens[row].size(); ++i)
      if (answers[row][i + 1] != 0) labels[row * longest + i] = tokens[row][i + 1];
  return labels;
}

int train(arguments given) {
  const std::filesystem::path folder = given.text("checkpoint");
  std::filesystem::create_directories(folder);
  const std::uint64_t epochs = given.number("epochs", 1), longest = given.number("longest", 512);

  const ps::bpe tokenizer = ps::bpe::from_file(given.text("tokenizer"));
  const auto conversations =
      ps::lines(given.text("conversations")) | ps::decode<ps::json> | ps::map(chat(tokenizer));
  const auto lengths = ps::derive(
      conversations, "tokens",
      [](const auto& sample) { return std::uint64_t{ps::get<"tokens">(sample).size()}; }, folder.string());
  const auto loader = conversations | ps::shuffle(ps::seed(7)) |
                      ps::bucket_by(lengths, given.number("buckets", 8),
                                    {.max_tokens = given.number("tokens", 1024)}, ps::pad_to_longest) |
                      ps::workers(given.number("workers", 1, max_workers));

  tiny_transformer model(tokenizer.vocab_size(), given.number("width", 16), longest);
  const auto rate = static_cast<float>(given.share("rate", tiny_transformer::usual_rate));
  given.done();
  const checkpoint_file checkpoint(folder / "checkpoint");
  const auto saved = checkpoint.load(model);
  auto run = saved ? loader.open(*saved) : loader.open();

  for (auto epoch : run.epochs(epochs))
    for (auto&& b : epoch) {
      const ps::padded_view<std::uint32_t> tokens = ps::get<"tokens">(b);
      const std::vector<std::int64_t> labels = labels_of(tokens, ps::get<"loss_mask">(b));
      const std::size_t places = tokens.values().size(), row = places / tokens.size();
      if (row > longest) throw std::runtime_error("a conversation is longer than --longest");
      std::vector<std::int32_t> starts, positions;
      for (std::size_t i = 0; i <= places; i += row) starts.push_back(static_cast<std::int32_t>(i));
      for (std::size_t i = 0; i < places; ++i) positions.push_back(static_cast<std::int32_t>(i % row));
      const double loss = model.train({tokens.values().flat(), labels, starts, positions}, rate);
      const std::uint64_t used =
          std::accumulate(tokens.lengths().begin(), tokens.lengths().end(), std::uint64_t{0});
      const auto learned = static_cast<std::size_t>(
          std::count_if(labels.begin(), labels.end(), [](std::int64_t label) { return label >= 0; }));
      std::printf("epoch %llu step %llu rows %zu longest %zu tokens %llu of %zu answers %zu loss %.9f\n",
                  static_cast<unsigned long long>(b.epoch()), static_cast<unsigned long long>(b.step()),
                  b.size(), row, static_cast<unsigned long long>(used), places, learned, loss);
      std::fflush(stdout);
      checkpoint.save(model, run.state());
    }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (asked_for_help(argc, argv, usage)) return 0;
  try {
    return train(arguments(argc, argv, usage));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "finetune_instructions: %s\n", e.what());
    return 1;
  }
}
