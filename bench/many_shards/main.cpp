// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Row 10: the time to the first batch of a windowed shuffle over 10,000 indexed shards with 100 million
// samples, against opening each index file, reading its header and closing it; and the memory it takes.
//
// The index files are complete and real, 320 KB each. Of the shards only the samples of the first batch are
// written, with their headers, and both ends, which a run compares with the index; the rest of each file is a
// hole of the right size.

#include "support/folder.hpp"
#include "support/harness.hpp"

#include <penstock/core/record.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/workers.hpp>

#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ps = penstock;

namespace {

constexpr std::uint64_t samples_each = 10'000;
constexpr std::size_t sample_bytes = 100;

/// A figure of /proc/self/status, in bytes.
std::uint64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kilobytes = 0;
    if (word == name + ":" && status >> kilobytes) return kilobytes * 1024;
  }
  throw std::runtime_error("/proc/self/status has no " + name);
}

void write_file(const std::string& path, const std::vector<char>& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out) throw std::runtime_error("cannot write " + path);
}

/// Gives a shard a fixed modification time, so that copies of one index match all shards.
void set_time(const std::string& path) {
  const timespec times[2] = {{1'600'000'000, 0}, {1'600'000'000, 0}};
  if (::utimensat(AT_FDCWD, path.c_str(), times, 0) != 0)
    throw std::runtime_error("cannot set the time of " + path);
}

struct dataset {
  std::vector<std::string> names, indexes;
  std::vector<char> first_shard;
};

dataset make(const bench::folder& folder, std::uint64_t shards) {
  dataset made;
  const auto first = bench::write_shards(folder, 1, samples_each, sample_bytes, false).front();
  set_time(first);
  std::filesystem::remove(first + ".penstock-index");
  // For that time.
  static_cast<void>(ps::webdataset(std::vector{first}, {.index = ps::index_policy::keep}));
  const auto read_whole = [](const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::vector<char> bytes(std::filesystem::file_size(path));
    in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!in) throw std::runtime_error("cannot read " + path);
    return bytes;
  };
  made.first_shard = read_whole(first);
  const std::vector<char> index = read_whole(first + ".penstock-index");
  for (std::uint64_t i = 0; i < shards; ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "s%06llu.tar", static_cast<unsigned long long>(i));
    const std::string path = folder.file(name);
    write_file(path, {});
    std::filesystem::resize_file(path, made.first_shard.size());
    set_time(path);
    write_file(path + ".penstock-index", index);
    made.names.push_back(path);
    made.indexes.push_back(path + ".penstock-index");
  }
  return made;
}

auto loader_of(const dataset& d) {
  return ps::webdataset(d.names, {.index = ps::index_policy::require}) |
         ps::shuffle(ps::seed(7), ps::window(16)) | ps::fields<"bin"> | ps::batch(256) | ps::workers(1);
}

/// Writes the samples of the first batches to their shards, with their headers, and the ends of these shards.
void write_payloads(const dataset& d, std::uint64_t count) {
  const ps::webdataset source(d.names, {.index = ps::index_policy::require});
  const ps::windowed_shuffle_order order({source.size(), source.starts()}, 7, 16, 1);
  const auto bound = order.bind(0);
  std::vector<bench::member_place> members;
  {
    bench::options beside;
    beside.dir = std::filesystem::path(d.names.front()).parent_path();
    const bench::folder other(beside, "one");
    const auto whole = other.file("one.tar");
    write_file(whole, d.first_shard);
    const bench::descriptor file(whole);
    bench::find_members(file.get(), file.size(), ".bin", members);
  }
  std::vector<char> touched(d.names.size(), 0);
  const auto write = [&](std::size_t shard, std::uint64_t begin, std::size_t bytes) {
    const int file = ::open(d.names[shard].c_str(), O_WRONLY | O_CLOEXEC);
    const bool good = file >= 0 && ::pwrite(file, d.first_shard.data() + begin, bytes,
                                            static_cast<off_t>(begin)) == static_cast<ssize_t>(bytes);
    if (file >= 0) ::close(file);
    if (!good) throw std::runtime_error("cannot write to " + d.names[shard]);
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto place = source.manifest().locate(bound(i).index);
    write(place.shard, members[static_cast<std::size_t>(place.sample)].offset - 512, 1024);
    if (touched[place.shard] == 0) {
      constexpr std::size_t ends = 32'768;  // the last headers, and up to 10 KiB of zeros
      write(place.shard, 0, ends);
      write(place.shard, d.first_shard.size() - ends, ends);
    }
    touched[place.shard] = 1;
  }
  for (std::size_t i = 0; i < touched.size(); ++i)
    if (touched[i] != 0) set_time(d.names[i]);
}

std::uint64_t first_batch(const dataset& d) {
  auto run = loader_of(d).open();
  for (auto&& b : run)
    return bench::first_words(reinterpret_cast<const std::byte*>(ps::get<"bin">(b).data()), b.size(),
                              sample_bytes);
  return 0;
}

std::uint64_t peek_all(const dataset& d) {
  char head[128];
  std::uint64_t samples = 0;
  for (const auto& name : d.indexes) {
    const int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0 || ::pread(file, head, sizeof head, 0) != static_cast<ssize_t>(sizeof head))
      throw std::runtime_error("cannot read " + name);
    ::close(file);
    std::uint64_t count;
    std::memcpy(&count, head + 32, sizeof count);
    samples += count;
  }
  return samples;
}

void measure(const bench::options& o) {
  if (!o.wants("10a") && !o.wants("10b")) return;
  const std::uint64_t shards = o.quick ? 1'000 : 10'000;
  const std::string size =
      std::to_string(shards) + " shards, " + std::to_string(shards * samples_each / 1'000'000) + " M samples";
  const bench::row time{
      "10a", "open " + size + ", window(16), first batch: share of the time of reading each index header", 5,
      true};
  const bench::row memory{"10b", "opening as in row 10a: MB of memory, pages of mapped indexes not counted",
                          64, true};
  const std::uint64_t bytes = shards * 360'000;
  if (std::filesystem::space(o.dir).available < 2 * bytes) {
    for (const auto& r : {time, memory})
      bench::print_skipped(r, "the disk has no room for " + std::to_string(bytes) + " bytes");
    return;
  }
  const bench::folder folder(o, "many_shards");
  const dataset d = make(folder, shards);
  write_payloads(d, 8 * 256);
  if (peek_all(d) != shards * samples_each)
    throw std::runtime_error("the index files do not say what was written");

  if (o.wants("10b")) {
    ::malloc_trim(0);  // memory freed before must not be reused now
    const std::uint64_t before = status_bytes("RssAnon");
    auto run = loader_of(d).open();
    std::uint64_t sum = 0, highest = 0;
    for (auto&& b : run) {
      sum = bench::first_words(reinterpret_cast<const std::byte*>(ps::get<"bin">(b).data()), b.size(),
                               sample_bytes);
      highest = status_bytes("RssAnon");
      break;
    }
    if (sum == 0) throw std::runtime_error("row 10: the first batch is empty");
    const double megabytes = static_cast<double>(highest - std::min(before, highest)) / 1e6;
    bench::print_row(memory, megabytes, megabytes,
                     "growth of RssAnon from before the plan to the first batch");
  }
  if (!o.wants("10a")) return;
  std::vector<double> ratios, ours, theirs;
  for (int pair = -1; pair < o.pairs; ++pair) {
    double begin = bench::seconds_now();
    if (first_batch(d) == 0) throw std::runtime_error("row 10: the first batch is empty");
    const double our_time = bench::seconds_now() - begin;
    begin = bench::seconds_now();
    peek_all(d);
    const double their_time = bench::seconds_now() - begin;
    if (pair < 0) continue;
    ours.push_back(our_time);
    theirs.push_back(their_time);
    ratios.push_back(our_time / their_time);
  }
  bench::print_row(time, bench::quantile(ratios, 0.75), bench::quantile(ratios, 0.5),
                   "ours " + bench::milliseconds(bench::quantile(ours, 0.5)) + ", reference " +
                       bench::milliseconds(bench::quantile(theirs, 0.5)) + ", " + std::to_string(o.pairs) +
                       " pairs, upper quartile");
}

}  // namespace

int main(int argc, char** argv) { return bench::run_main(argc, argv, measure); }
