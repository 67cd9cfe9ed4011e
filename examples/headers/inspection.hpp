// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "names.hpp"

#include "support/fixtures.hpp"

#include <penstock/codec/bpe.hpp>

namespace {

const made_up_shards files("of_inspections", 128, 2);  // train-0000.tar to train-0127.tar
const auto source = penstock::webdataset("train-{0000..0127}.tar");
const std::vector<int> samples = [] {
  std::vector<int> all(100, 1);
  all[50] = 4;
  return all;
}();

/// One sample is bad, and bad.jsonl says so.
const auto loader = penstock::from(samples) | penstock::map([](int x) {
                      if (x == 4) throw penstock::error(penstock::errc::format, "a four");
                      return x;
                    }) |
                    penstock::bad_samples::skip(9, penstock::bad_samples::ledger("bad.jsonl")) |
                    penstock::global_batch(32);

const bool has_run = [] {
  for (const char* const folder : {"derived", "tokens"}) std::filesystem::create_directory(folder);
  write_file("corpus.txt", "a dog\n");
  std::filesystem::copy_file(penstock_test::fixture("tokenizers") / "gpt.tokenizer", "tokenizer.json",
                             std::filesystem::copy_options::overwrite_existing);
  for (auto&& b : loader) train(b);
  return true;
}();

}  // namespace
