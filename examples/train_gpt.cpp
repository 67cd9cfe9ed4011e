// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Trains a small transformer on text files, of which each line is a document: tokenised by a tokenizer.json,
// packed into rows, with attention and loss within documents. Killed at any moment, it goes on from its
// checkpoint and prints the losses that it would have printed.

#include "arguments.hpp"
#include "checkpoint_file.hpp"
#ifdef TRAIN_WITH_LIBTORCH
#include "tiny_transformer_libtorch.hpp"
#else
#include "tiny_transformer.hpp"
#endif

#include <penstock/penstock.hpp>

#include <penstock/codec/bpe.hpp>
#include <penstock/inspection/derive.hpp>
#include <penstock/source/lines.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

namespace ps = penstock;

namespace {

const std::string usage =
    "train_gpt --texts PATTERN --tokenizer FILE --checkpoint FOLDER [--epochs N] [--rows N] [--length "
    "TOKENS] "
    "[--width N] [--rate R] [--workers N]";

int train(arguments given) {
  const std::filesystem::path folder = given.text("checkpoint");
  std::filesystem::create_directories(folder);
  const std::uint64_t epochs = given.number("epochs", 1), length = given.number("length", 128);

  const ps::bpe tokenizer = ps::bpe::from_file(given.text("tokenizer"));
  const auto texts = ps::lines(given.text("texts")) | ps::decode<ps::bpe>(tokenizer);
  // How many tokens each document has: computed once, and kept beside the checkpoint.
  const auto lengths = ps::derive(
      texts, "tokens", [](const auto& tokens) { return std::uint64_t{tokens.size()}; }, folder.string());
  const auto loader =
      texts | ps::shuffle(ps::seed(7)) | ps::pack(lengths, length, {.overlong = ps::overlong::split}) |
      ps::batch(given.number("rows", 4)) | ps::workers(given.number("workers", 1, max_workers));

  tiny_transformer model(tokenizer.vocab_size(), given.number("width", 16), length);
  const auto rate = static_cast<float>(given.share("rate", tiny_transformer::usual_rate));
  given.done();
  const checkpoint_file checkpoint(folder / "checkpoint");
  const auto saved = checkpoint.load(model);
  auto run = saved ? loader.open(*saved) : loader.open();

  for (auto epoch : run.epochs(epochs))
    for (auto&& b : epoch) {
      const auto rows = b.values();
      // What kernels for packed rows are given: where documents begin, and where each token is in its own.
      const auto starts = rows.cu_seqlens_padded(), positions = rows.position_ids();
      const double loss = model.train({rows.flat(), rows.labels(), starts, positions}, rate);
      std::printf("epoch %llu step %llu rows %zu documents %zu full %.1f%% loss %.9f\n",
                  static_cast<unsigned long long>(b.epoch()), static_cast<unsigned long long>(b.step()),
                  b.size(), rows.documents().size(), 100 * rows.fill(), loss);
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
    std::fprintf(stderr, "train_gpt: %s\n", e.what());
    return 1;
  }
}
