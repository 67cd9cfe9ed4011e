// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The snippets of docs/coming_from.md: loaders of PyTorch, tf.data, WebDataset and MosaicML Streaming,
// written with Penstock.

#include "made_up_shards.hpp"

#include <penstock/all.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "coming_from: %s\n", what);
  std::exit(1);
}

template <class Plan>
std::uint64_t samples_of(const Plan& plan) {
  std::uint64_t all = 0;
  for (auto&& b : plan.epoch(0)) all += b.valid_size();
  return all;
}

std::vector<std::vector<float>> sentences() {
  std::vector<std::vector<float>> all;
  for (std::size_t i = 0; i < 40; ++i) all.emplace_back(i % 5 + 1, 1.0f);
  return all;
}

void from_pytorch(std::uint64_t rank, std::uint64_t world_size) {
  const std::vector<std::vector<float>> dataset = sentences();
  // DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, seed=7, drop_last=True),
  // num_workers=4,
  //            pin_memory=True, prefetch_factor=2, persistent_workers=True, collate_fn=pad)
  auto loader = ps::from(dataset) | ps::shuffle(ps::seed(7)) | ps::shard(rank, world_size) |
                ps::batch(8, ps::tail::drop, ps::pad_to_longest) | ps::pin_and_copy | ps::workers(4) |
                ps::prefetch(8);
  auto run = loader.open();
  for (auto epoch : run.epochs(2)) {  // no set_epoch: every epoch has its own order
    for (auto&& batch : epoch) must(batch.size() == 8, "a batch of PyTorch's size");
  }
  const std::string state = to_string(run.state());  // StatefulDataLoader.state_dict()
  must(!state.empty(), "a state");
}

void from_tf_data() {
  const std::vector<int> tensors(1000, 3);
  // Dataset.from_tensor_slices(t).shuffle(100).map(f, num_parallel_calls=4).batch(32,
  // drop_remainder=True).prefetch(4)
  const auto f = [](int x) { return 0.5f * static_cast<float>(x); };
  auto dataset = ps::from(tensors) | ps::shuffle_buffer(100) | ps::map(f) | ps::batch(32, ps::tail::drop) |
                 ps::prefetch(4) | ps::workers(4);
  must(samples_of(dataset) == 992, "tf.data's batches");
  // .filter(p).take(10).repeat(3) of samples; take and repeat stand before stages that look at values
  auto some = ps::from(tensors) | ps::take(10) | ps::repeat(3) | ps::filter([](int x) { return x > 2; }) |
              ps::batch(5);
  must(samples_of(some) == 30, "take, repeat and filter");
}

void from_webdataset(std::uint64_t rank, std::uint64_t world_size) {
  // WebDataset("train-{0000..0003}.tar", shardshuffle=True, nodesplitter=split_by_node)
  //     .shuffle(1000).decode().to_tuple("npy", "cls").batched(16).with_epoch(20)
  auto loader = ps::webdataset("train-{0000..0003}.tar") | ps::shuffle(ps::seed(7), ps::window(2)) |
                ps::shard(rank, world_size) |
                ps::decode<ps::field<"npy", ps::npy<std::uint8_t>>, ps::field<"cls", ps::integer>> |
                ps::batch(16) | ps::steps(20);
  std::uint64_t steps = 0;
  for (auto&& batch : loader.epoch(0)) {
    must(get<"npy">(batch).shape()[1] == 28, "images");
    ++steps;
  }
  must(steps == 20, "twenty steps on every rank");
}

void from_mosaicml(const ps::world& here) {
  // StreamingDataset(local=..., shuffle=True, shuffle_algo="py1s", num_canonical_nodes=2, shuffle_seed=7,
  //                  predownload=64, batch_size=16), replication=1
  auto loader = ps::webdataset("train-{0000..0003}.tar") | ps::decode<ps::field<"cls", ps::integer>> |
                ps::shuffle(ps::seed(7), ps::window(2), ps::lanes(2)) | ps::shard(here.replicated(1)) |
                ps::prefetch(64) | ps::batch(16, ps::tail::pad);
  auto run = loader.open();
  std::uint64_t steps = 0;
  const std::uint64_t all = run.steps_per_epoch();
  for (auto&& batch : run) {
    if (++steps == 3) break;  // state_dict(); load_state_dict() on any number of ranks
    must(batch.valid().size() == batch.size(), "a mask");
  }
  auto again = loader.open(run.state());
  for (auto&& batch : again.epoch(0)) steps += batch.size() != 0 ? 1 : 0;
  must(steps == all, "goes on where it stood");
}

}  // namespace

int main() {
  const made_up_shards here("coming_from", 4, 100);
  from_pytorch(0, 2);
  from_tf_data();
  from_webdataset(1, 2);
  from_mosaicml(ps::world{.rank = 0, .size = 2});
  std::puts("coming_from: ok");
}
