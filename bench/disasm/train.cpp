// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that make plans and loop over their batches, each in one function. tools/check_hot_loops.py looks
// where the compiler has put the functions `train_...` of this object.

#include <penstock/codec/npy.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/run/state.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/mapped_file.hpp>

#include <string>
#include <utility>
#include <vector>

namespace ps = penstock;

float train_on_files(const char* path);
float train_on_files(const char* path) {
  const auto loader = ps::webdataset(path) | ps::shuffle | ps::decode<ps::field<"npy", ps::npy<float>>> |
                      ps::batch(256) | ps::prefetch(4) | ps::workers(8);
  float sum = 0;
  for (auto&& b : loader.epoch(0))
    for (const float x : ps::get<"npy">(b).flat()) sum += x;
  return sum;
}

float train_on(const char* path, const char* saved);
float train_on(const char* path, const char* saved) {
  const auto loader = ps::webdataset(ps::mapped_file(path)) | ps::shuffle |
                      ps::decode<ps::field<"npy", ps::npy<float>>> | ps::batch(256) | ps::workers(8);
  auto run = loader.open(ps::state_from_string(saved));
  float sum = 0;
  for (auto epoch : run.epochs(3))
    for (auto&& b : epoch)
      for (const float x : ps::get<"npy">(b).flat()) sum += x;
  return sum + static_cast<float>(to_string(run.state()).size());
}

int train_on_both(std::vector<int> a, std::vector<int> b);
int train_on_both(std::vector<int> a, std::vector<int> b) {
  const auto loader =
      ps::concat(ps::from(std::move(a)), ps::from(std::move(b))) | ps::batch(64) | ps::workers(2);
  int sum = 0;
  for (auto&& batch : loader.epoch(0))
    for (const int x : batch) sum += x;
  return sum;
}

int train_on_mixture(std::vector<int> a, std::vector<int> b);
int train_on_mixture(std::vector<int> a, std::vector<int> b) {
  const auto loader = ps::mix(ps::weights{1, 2}, ps::from(std::move(a)), ps::from(std::move(b))) |
                      ps::batch(64) | ps::workers(2);
  int sum = 0;
  for (auto&& batch : loader.epoch(0))
    for (const int x : batch) sum += x;
  return sum;
}

int train_on_pairs(std::vector<int> a, std::vector<int> b);
int train_on_pairs(std::vector<int> a, std::vector<int> b) {
  const auto loader = ps::zip<"a", "b">(ps::from(std::move(a)), ps::from(std::move(b))) |
                      ps::map([](const auto& pair) { return ps::get<"a">(pair) + ps::get<"b">(pair); }) |
                      ps::batch(64) | ps::workers(2);
  int sum = 0;
  for (auto&& batch : loader.epoch(0))
    for (const int x : batch) sum += x;
  return sum;
}

int main() {}
