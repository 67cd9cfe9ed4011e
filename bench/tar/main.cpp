// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows 6, 7, 8 and 18: samples in tar shards, in the page cache. Of 110 KB: read into batches, against a loop
// of pread into as many batch buffers in turn; as views of a mapping, against mmap by hand. Of 1 KB: against
// `tar xf`; shuffled, against the fastest of other loaders, each with a file of its own format.

#include "support/folder.hpp"
#include "support/harness.hpp"
#include "support/program.hpp"

#include <penstock/core/record.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/workers.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::size_t batch_size = 64;
/// As many batches as the engine has in flight with one worker by default.
constexpr std::size_t buffers_of_reference = 4;
constexpr std::size_t sample_bytes = 110'000;

struct look_at_batch {
  template <class Batch>
  std::uint64_t operator()(Batch& b) const {
    const auto values = ps::get<"bin">(b);
    const auto stride = static_cast<std::size_t>(values.shape()[1]);
    return bench::first_words(reinterpret_cast<const std::byte*>(values.data()), b.size(), stride);
  }
};

std::uint64_t read_loop(std::span<const bench::member_place> members, bench::buffers_in_turn& buffers) {
  std::uint64_t sum = 0;
  for (std::size_t begin = 0; begin < members.size(); begin += batch_size) {
    std::byte* into = buffers.next();
    const std::size_t count = std::min(batch_size, members.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      const bench::member_place& m = members[begin + i];
      bench::read_range(m.file, into + i * sample_bytes, static_cast<std::size_t>(m.size), m.offset);
    }
    sum += bench::first_words(into, count, sample_bytes);
  }
  return sum;
}

void large_samples(const bench::options& o) {
  const bench::folder folder(o, "tar_large");
  const std::uint64_t shards = o.quick ? 2 : 4, each = 512;
  const auto names = bench::write_shards(folder, shards, each, sample_bytes, false);
  std::vector<bench::descriptor> files;
  std::vector<bench::member_place> members;
  for (const auto& name : names) {
    files.emplace_back(name);
    bench::find_members(files.back().get(), files.back().size(), ".bin", members);
  }
  const std::span<const bench::member_place> all(members);
  const auto loader = ps::webdataset(names) | ps::fields<"bin"> | ps::batch(batch_size);
  const std::size_t batch_bytes = batch_size * sample_bytes;

  if (o.wants("6a")) {
    auto run = (loader | ps::workers(1)).open();
    bench::buffers_in_turn buffers(buffers_of_reference, batch_bytes);
    bench::compare(o, {"6a", "110 KB samples from tar, batch(64), 1 worker / pread loop", 0.95},
                   bench::epochs_of(run, look_at_batch{}), [&] { return read_loop(all, buffers); });
  }
  if (o.wants("6b")) {
    auto run = (loader | ps::workers(2)).open();
    const std::size_t each_has = buffers_of_reference / 2 + 1;
    std::array<bench::buffers_in_turn, 2> buffers{{{each_has, batch_bytes}, {each_has, batch_bytes}}};
    bench::compare(o, {"6b", "the same, 2 workers / two bare threads with half of the loop each", 0.85},
                   bench::epochs_of(run, look_at_batch{}), [&] {
                     return bench::on_two_threads([&](std::size_t half) {
                       return read_loop(all.subspan(half * all.size() / 2, all.size() / 2), buffers[half]);
                     });
                   });
  }
  if (o.wants("7") || o.wants("7b")) {
    std::vector<bench::mapping> maps;
    for (const auto& name : names) maps.emplace_back(name);
    const auto by_hand = [&] {
      std::uint64_t sum = 0;
      const int first = files.front().get();
      for (const bench::member_place& m : all) {
        const auto which = static_cast<std::size_t>(m.file - first);
        sum += bench::all_words(maps[which].data() + m.offset, static_cast<std::size_t>(m.size));
      }
      return sum;
    };
    for (const auto& f : files)
      if (f.get() - files.front().get() != &f - files.data())
        throw std::runtime_error("descriptors are not in a row");
    auto run = (ps::webdataset(ps::mapped_file(names)) | ps::fields<"bin"> | ps::workers(0)).open();
    bench::compare(
        o, {"7", "the same as views of mapped files, no workers, sum of the words / mmap by hand", 0.95},
        bench::epochs_of(run,
                         [](const auto& sample) {
                           const ps::bytes_view bytes = ps::get<"bin">(sample);
                           return bench::all_words(bytes.data(), bytes.size());
                         }),
        by_hand);
    auto inside =
        (ps::webdataset(ps::mapped_file(names)) | ps::fields<"bin"> | ps::map([](const auto& sample) {
           const ps::bytes_view bytes = ps::get<"bin">(sample);
           return bench::all_words(bytes.data(), bytes.size());
         }) |
         ps::workers(0))
            .open();
    bench::compare(o, {"7b", "the same, summed by map in the chain", 0},
                   bench::epochs_of(inside, [](const std::uint64_t& sum) { return sum; }), by_hand);
  }
}

void run_command(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
}

void small_samples(const bench::options& o) {
  if (!o.wants("8a") && !o.wants("8b") && !o.wants("8c")) return;
  const bench::folder folder(o, "tar_small");
  const std::uint64_t samples = o.quick ? 40'000 : 100'000;
  const auto names = bench::write_shards(folder, 1, samples, 1024, true);
  const auto pass = [&] {
    std::uint64_t sum = 0;
    for (auto&& b : (ps::webdataset(names, {.index = ps::index_policy::keep}) | ps::fields<"bin", "cls"> |
                     ps::batch(batch_size) | ps::workers(1))
                        .epoch(0))
      sum += look_at_batch{}(b) + ps::get<"cls">(b).shape()[0];
    return sum;
  };
  std::vector<bench::member_place> members;
  const bench::descriptor file(names.front());
  bench::find_members(file.get(), file.size(), ".bin", members);
  bench::buffers_in_turn buffer(1, 1024);
  std::uint64_t expected = members.size();
  for (const auto& m : members) {
    std::byte* into = buffer.next();
    bench::read_range(m.file, into, static_cast<std::size_t>(m.size), m.offset);
    expected += bench::first_words(into, 1, 1024);
  }
  const auto checked = [&] {
    const std::uint64_t sum = pass();
    if (sum != expected) throw std::runtime_error("row 8: the samples are not those that were written");
    return sum;
  };
  const auto tar = [&] {
    run_command("tar xf '" + names.front() + "' -O > /dev/null");
    return expected;
  };
  bench::compare(
      o, {"8a", "1 KB samples of two members from tar, in order, opening included, 1 worker / tar xf -O", 3},
      checked, tar);
  bench::compare(o, {"8b", "the same, the index built by this pass", 0}, checked, tar,
                 [&] { std::filesystem::remove(names.front() + ".penstock-index"); });
  if (!o.wants("8c")) return;
  const bench::row row{"8c", "the same / webdataset of PyPI, samples a second", 100};
  const char* python = std::getenv("BENCH_WEBDATASET_PYTHON");
  const char* script = std::getenv("BENCH_WEBDATASET_SCRIPT");
  if (python == nullptr || script == nullptr) {
    bench::print_skipped(
        row, "BENCH_WEBDATASET_PYTHON is not set; run.sh sets it where webdataset can be installed");
    return;
  }
  const std::uint64_t theirs_reads = o.quick ? 5'000 : 20'000;
  const std::string command = std::string("'") + python + "' '" + script + "' '" + names.front() + "' " +
                              std::to_string(theirs_reads);
  std::vector<double> ratios, ours, theirs;
  for (int pair = 0; pair < o.pairs; ++pair) {
    const double begin = bench::seconds_now();
    checked();
    ours.push_back(static_cast<double>(samples) / (bench::seconds_now() - begin));
    const double rate = bench::rate_of_program(command);
    if (rate <= 0) {
      bench::print_skipped(row, "the webdataset program failed: " + command);
      return;
    }
    theirs.push_back(rate);
    ratios.push_back(ours.back() / rate);
  }
  bench::print_row(row, bench::quantile(ratios, 0.25), bench::quantile(ratios, 0.5),
                   "ours " + std::to_string(static_cast<long>(bench::quantile(ours, 0.5))) +
                       "/s, webdataset " + std::to_string(static_cast<long>(bench::quantile(theirs, 0.5))) +
                       "/s, " + std::to_string(o.pairs) + " pairs");
}

/// Another loader: a Python that has it, and the script beside this program.
struct peer {
  std::string name, command;
  double rate = 0;
};

std::vector<peer> peers_that_are_there(const bench::folder& folder, std::uint64_t samples) {
  std::vector<peer> all;
  const char* const scripts = std::getenv("BENCH_PEERS_SCRIPTS");
  for (const char* const name : {"torch", "ffcv"}) {
    const char* const python =
        std::getenv(std::string_view(name) == "torch" ? "BENCH_TORCH_PYTHON" : "BENCH_FFCV_PYTHON");
    if (python == nullptr || scripts == nullptr) continue;
    all.push_back({name, "'" + std::string(python) + "' '" + scripts + "/" + name + "_rate.py' '" +
                             folder.file(std::string("peer.") + name) + "' " + std::to_string(samples) +
                             " 1024"});
  }
  return all;
}

/// Rows 18: samples of 1 KB, fully shuffled. Each side has its own process, file and best number of workers.
void shuffled_samples(const bench::options& o) {
  if (!o.wants("18") && !o.wants("18b") && !o.wants("18c")) return;
  const bench::folder folder(o, "tar_shuffled");
  const std::uint64_t samples = o.quick ? 40'000 : 200'000;
  const auto names = bench::write_shards(folder, 4, samples / 4, 1024, false);
  const auto run_over = [](const auto& where) {
    return (ps::webdataset(where) | ps::fields<"bin"> | ps::shuffle(ps::seed(7)) | ps::batch(batch_size) |
            ps::workers(2))
        .open();
  };
  auto itself = run_over(ps::file(names)),
       mapped = run_over(ps::file(names, {.access = ps::file_access::map})),
       read = run_over(ps::file(names, {.access = ps::file_access::read}));
  auto ours = bench::epochs_of(itself, look_at_batch{});
  ours();  // notices that the shards are in memory
  bench::compare(o, {"18b", "1 KB samples, webdataset(path), fully shuffled, 2 workers / all mapped", 0.95},
                 ours, bench::epochs_of(mapped, look_at_batch{}));
  bench::compare(o, {"18c", "the same / all through pread", 0}, ours,
                 bench::epochs_of(read, look_at_batch{}));

  const bench::row row{"18", "the same / the faster of FFCV and PyTorch, samples a second", 1.3};
  if (!o.wants(row.id)) return;
  std::vector<peer> peers = peers_that_are_there(folder, samples);
  std::vector<double> ratios, our_rates;
  std::string notes;
  for (int pair = 0; pair < std::min(o.pairs, 7); ++pair) {
    const double begin = bench::seconds_now();
    ours();
    our_rates.push_back(static_cast<double>(samples) / (bench::seconds_now() - begin));
    double best = 0;
    for (peer& one : peers) {
      one.rate = bench::rate_of_program(one.command);
      best = std::max(best, one.rate);
    }
    if (best <= 0) {
      bench::print_skipped(row, peers.empty() ? "no peer is there: run.sh sets BENCH_TORCH_PYTHON and "
                                                "BENCH_FFCV_PYTHON where they can be installed"
                                              : "the peers failed: " + peers.front().command);
      return;
    }
    ratios.push_back(our_rates.back() / best);
  }
  for (const peer& one : peers)
    notes += ", " + one.name + " " + std::to_string(static_cast<long>(one.rate)) + "/s";
  bench::print_row(row, bench::quantile(ratios, 0.25), bench::quantile(ratios, 0.5),
                   "ours " + std::to_string(static_cast<long>(bench::quantile(our_rates, 0.5))) + "/s" +
                       notes + (peers.size() < 2 ? " (the other one is not there), " : ", ") +
                       std::to_string(ratios.size()) + " pairs");
}

void measure(const bench::options& o) {
  if (o.wants("6a") || o.wants("6b") || o.wants("7") || o.wants("7b")) large_samples(o);
  small_samples(o);
  shuffled_samples(o);
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
