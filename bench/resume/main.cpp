// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 16: the cost of saving the state of a run, of resuming from it, and of proving an order on any number
// of ranks; and 1,024 ranks of one job over a trillion tokens, one after another in this process.

#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/core/random.hpp>
#include <penstock/inspection/prove.hpp>
#include <penstock/inspection/topology.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/tokens.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/workers.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::uint64_t hundred_million = 100'000'000;

/// 10,000 shards of about 7,500 to 12,500 samples: 100 million numbers.
auto numbers_in_shards() {
  std::vector<std::uint64_t> starts{0};
  for (std::uint64_t s = 1; s < 10'000; ++s) starts.push_back(s * 10'000 + ps::mix64(s) % 2'500);
  starts.push_back(hundred_million);
  return ps::generated(
      hundred_million, [](std::uint64_t i) { return i; }, starts);
}

void restore(const bench::options& o) {
  const auto source = numbers_in_shards();
  constexpr int times = 16;  // repetitions in each measurement
  std::uint64_t draw = 1;
  const auto both = [&](const char* id, const char* what, const auto& loader) {
    const bench::row r{id, what, 1 / 1.2};
    if (!o.wants(r.id)) return;
    ps::state where = loader.open().state();
    const std::uint64_t steps = loader.open().steps_per_epoch();
    bench::compare(
        o, r,
        [&] {
          std::uint64_t sum = 0;
          for (int i = 0; i < times; ++i) {
            where.step = (draw = ps::mix64(draw)) % steps;
            auto run = loader.open(ps::state_from_string(to_string(where)));
            sum += run.next()->values()[0];
          }
          return sum;
        },
        [&] {
          std::uint64_t sum = 0;
          for (int i = 0; i < times; ++i) {
            auto run = loader.open();
            sum += run.next()->values()[0];
          }
          return sum;
        },
        [] {}, bench::sums::unknown);
  };
  both("16a", "first batch at a random step of 100 M samples in 10,000 shards / at step 0, shuffle(seed(7))",
       source | ps::shuffle(ps::seed(7)) | ps::batch(256) | ps::workers(1));
  both("16b", "the same, shuffle(seed(7), window(16), lanes(64))",
       source | ps::shuffle(ps::seed(7), ps::window(16), ps::lanes(64)) | ps::batch(256) | ps::workers(1));
}

void sizes(const bench::options& o) {
  const auto source = numbers_in_shards();
  const auto size = [&](const char* id, const char* what, double maximum, const auto& loader) {
    const bench::row r{id, what, maximum, true};
    if (!o.wants(r.id)) return;
    auto run = loader.open();
    for (int i = 0; i < 100; ++i) static_cast<void>(run.next());
    const double kilobytes = static_cast<double>(to_string(run.state()).size()) / 1000;
    bench::print_row(r, kilobytes, kilobytes, "after 100 batches of 256");
  };
  size("16c", "a state as text, KB", 4, source | ps::shuffle(ps::seed(7)) | ps::batch(256));
  size("16d", "a state as text with shuffle_buffer(10,seed(000)), KB", 200,
       source | ps::shuffle_buffer(10'000) | ps::batch(256));
}

void pauses(const bench::options& o) {
  using sample = std::array<std::byte, 1024>;
  const bench::row r{
      "16e", "1 KB samples, shuffled, batch(256), one worker: state() after every batch / never", 0.99};
  if (!o.wants(r.id)) return;
  const std::vector<sample> data(o.quick ? 4'096 : 262'144);
  const auto loader = ps::from(data) | ps::shuffle(ps::seed(7)) | ps::batch(256) | ps::workers(1);
  auto ours = loader.open(), reference = loader.open();
  std::uint64_t sum = 0;
  const auto look = [](auto& b) { return bench::first_words(b.values().data(), b.size(), sizeof(sample)); };
  const auto look_and_note = [&](auto& b) {
    sum += ours.state().step;
    return look(b);
  };
  // Rounds of a third of a second: in shorter ones other activity on the machine exceeds a hundredth.
  const auto eight = [](auto epoch) {
    return [epoch]() mutable {
      std::uint64_t seen = 0;
      for (int i = 0; i < 8; ++i) seen += epoch();
      return seen;
    };
  };
  bench::compare(o, r, eight(bench::epochs_of(ours, look_and_note)),
                 eight(bench::epochs_of(reference, look)));
  bench::escape(&sum);
}

/// The peak memory of this process.
double highest_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes / 1e3;
  }
  throw std::runtime_error("cannot read /proc/self/status");
}

/// 1,024 ranks over a trillion tokens in a sparse file: at the last step and at a random one each rank opens
/// the job's state and takes its batch; together they have each of the step's positions exactly once. The
/// ranks of the last step read the file one after another, because a process has addresses for only about
/// sixty mappings of it; those of the other step are all open at once, over as many numbers as there are
/// windows.
void trillion(const bench::options& o) {
  const bench::row r{"16f", "1,024 ranks over a trillion tokens: most memory of the process, MB", 1000, true};
  if (!o.wants(r.id)) return;
  const bench::folder folder(o, "resume");
  const std::string path = folder.file("trillion.bin");
  std::ofstream(path).close();
  std::filesystem::resize_file(path, 2'000'000'000'000);
  constexpr std::uint64_t ranks = 1024, global = 4096;
  const auto over = [](const auto& source, std::uint64_t rank) {
    return source | ps::shuffle(ps::seed(7), ps::window(1), ps::lanes(64)) | ps::shard(rank, ranks) |
           ps::global_batch(global, ps::tail::drop) | ps::workers(0);
  };
  const auto tokens = ps::raw_tokens<std::uint16_t>(path, ps::token_window<1024>{});
  const auto windows = ps::generated(tokens.size(), [](std::uint64_t i) { return i; });
  const auto loader = [&](std::uint64_t rank) { return over(tokens, rank); };
  const double begin = bench::seconds_now();
  const std::vector<ps::topology> shapes{{128, 8}, {64, 8}, {1, 1000}};
  const ps::proof found = ps::prove(loader(0), shapes, {.stops = {0, 1'000, 100'000}, .threads = 2});
  if (!found.holds()) throw std::runtime_error(to_string(found));
  ps::state where = loader(0).open().state();
  const std::uint64_t steps = loader(0).open().steps_per_epoch();
  const int looks = o.quick ? 1 : 2;
  for (int look = 0; look < looks; ++look) {
    where.step = look == 0 ? steps - 1 : ps::mix64(static_cast<std::uint64_t>(look)) % steps;
    std::vector<std::uint64_t> indices;
    const auto take = [&](auto& run) {
      auto got = run.next();
      if (!got) throw std::runtime_error("a rank has no batch at a step of the epoch");
      for (const ps::position at : got->positions()) indices.push_back(at.index);
      if (run.state().epoch * steps + run.state().step != where.step + 1)
        throw std::runtime_error("a rank stands at another step");
    };
    if (look == 0) {
      for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        auto run = loader(rank).open(ps::state_from_string(to_string(where)));
        take(run);
      }
    } else {
      const auto numbered = [&](std::uint64_t rank) { return over(windows, rank); };
      ps::state of_numbers = numbered(0).open().state();
      of_numbers.step = where.step;
      std::vector<decltype(numbered(0).open())> job;
      for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        job.push_back(numbered(rank).open(ps::state_from_string(to_string(of_numbers))));
        take(job.back());
      }
    }
    std::sort(indices.begin(), indices.end());
    if (indices.size() != global) throw std::runtime_error("a step has too few or too many samples");
    for (std::size_t i = 0; i < indices.size(); ++i)
      if (indices[i] != where.step * global + i) throw std::runtime_error("a step has other positions");
  }
  const double maximum = highest_megabytes();
  bench::print_row(r, maximum, maximum,
                   "the last and " + std::to_string(looks - 1) + " random of " + std::to_string(steps) +
                       " steps, " + std::to_string(found.positions) + " windows of 1,024 tokens, " +
                       bench::milliseconds(bench::seconds_now() - begin) + " with the proof");
}

void proofs(const bench::options& o) {
  const bench::row time{
      "16g", "prove 100 M samples, 10,000 shards, lanes(2048), on 64 topologies, 2 threads, s", 60, true};
  const bench::row near{
      "16h", "shards touched per node / (shards / nodes), 32 nodes of 8 ranks, 64 lanes a node", 1.1, true};
  if (!o.wants(time.id) && !o.wants(near.id)) return;
  const auto loader = numbers_in_shards() | ps::shuffle(ps::seed(7), ps::window(16), ps::lanes(2048)) |
                      ps::global_batch(16'384, ps::tail::drop);
  std::vector<ps::topology> shapes;
  for (std::uint64_t nodes = 1; nodes <= (o.quick ? 2u : 64u); ++nodes) shapes.push_back({nodes, 8});
  if (o.quick) shapes.push_back({32, 8});
  const double begin = bench::seconds_now();
  const ps::proof found = ps::prove(loader, shapes, {.stops = {0, 1'000}, .threads = 2});
  const double took = bench::seconds_now() - begin;
  if (!found.holds()) throw std::runtime_error(to_string(found));
  if (o.wants(time.id))
    bench::print_row(time, took, took,
                     std::to_string(shapes.size()) + " topologies of 8 to " +
                         std::to_string(shapes.back().ranks()) + " ranks");
  if (!o.wants(near.id)) return;
  for (const ps::topology_proof& t : found.topologies) {
    if (t.shape.nodes != 32) continue;
    const double each = static_cast<double>(found.shards) / 32;
    bench::print_row(near, static_cast<double>(t.max_shards) / each, static_cast<double>(t.sum) / 32 / each,
                     std::to_string(t.min_shards) + " to " + std::to_string(t.max_shards) + " of " +
                         std::to_string(found.shards));
  }
}

void measure(const bench::options& o) {
  trillion(o);  // before anything else allocates memory
  restore(o);
  sizes(o);
  pauses(o);
  proofs(o);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
