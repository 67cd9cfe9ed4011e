// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// No public name of the library collides with a system name: with the usual headers included and `using
// namespace penstock`, every stage can still be written.

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <regex.h>
#include <sched.h>
#include <search.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <syslog.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <ranges>
#include <string>
#include <vector>

#include <penstock/all.hpp>

#include "support/catch.hpp"
#include "support/raw_tar.hpp"
#include "support/temp_dir.hpp"

using namespace penstock;

namespace {

std::vector<int> numbers(int n) {
  std::vector<int> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

template <class Plan>
std::size_t samples_of(const Plan& plan) {
  std::size_t count = 0;
  for (auto&& b : (plan | allow_empty).epoch(0)) count += b.valid_size();
  return count;
}

}  // namespace

TEST_CASE("names: every stage and annotation can be written without its namespace") {
  const auto half = map([](int x) { return x / 2; });
  CHECK(samples_of(from(numbers(100)) | shuffle(seed(7)) | shard(0, 2) | skip(2) | take(40) | repeat(2) |
                   half | batch(8, tail::drop) | pin_and_copy | workers(1) | prefetch(2) |
                   memory(std::size_t{1} << 24) | seed(3) | watchdog(std::chrono::seconds(5)) |
                   require<guarantee::elastic>) == 40);
  CHECK(samples_of(from(numbers(50)) | shuffle_buffer(8) | filter([](int x) { return x % 2 == 0; }) | half |
                   batch(5) | steps(5)) == 25);
  CHECK(samples_of(generated(20, [](std::uint64_t i) { return i; }) | sequential | enumerate | batch(4)) ==
        20);
  const std::vector<std::string> words = {"1", "22", "333"};
  CHECK(samples_of(from(words) | decode<integer> | batch(2)) == 3);
  CHECK(samples_of(from(words) | decode<text> | batch(3, ragged)) == 3);
  CHECK(samples_of(from(words) | decode<text> | batch(3, pad_to_longest)) == 3);
  CHECK(samples_of(from(std::vector<std::vector<int>>{{1, 2}, {3}}) | unbatch | batch(2)) == 3);
}

TEST_CASE("names: stages of other kinds, and sources of sources") {
  const auto source = from(numbers(48));
  CHECK(samples_of(source | distributed_sampler({.num_replicas = 2, .seed = 1}) | shard(1, 2) | batch(4)) ==
        24);
  CHECK(samples_of(source | mosaic({.num_canonical_nodes = 1, .ranks_per_node = 1, .shuffle = true}) |
                   batch(4)) == 48);
  CHECK(samples_of(source |
                   mosaic_resampled({.num_canonical_nodes = 1, .ranks_per_node = 1}, {.epoch_size = 12}) |
                   batch(4)) == 12);
  CHECK(samples_of(source | shard(1, 2, replicate(2)) | global_batch(8)) == 48);
  CHECK(samples_of(source | bad_samples::skip(1) | batch(4)) == 48);
  CHECK(samples_of(source | bad_samples::replace(1) | batch(4)) == 48);
  CHECK(samples_of(concat(source, source) | batch(4)) == 96);
  CHECK(samples_of(mix(weights{1, 1}, source, source, samples_per_epoch(20)) | batch(4)) == 20);
  CHECK(samples_of(zip<"left", "right">(source, source) | batch(4)) == 48);
  CHECK(samples_of(synthetic({.samples = 8}) | batch(4)) == 8);
  const timeline events;
  CHECK(samples_of(source | events | batch(4)) == 48);
}

TEST_CASE("names: parts of a dataset too") {
  const penstock_test::temp_dir dir;
  const auto source = from(numbers(60));
  const auto last = derive(
      source, "last", [](int x) { return x % 10; }, dir.path().string());
  CHECK(samples_of(source | split(0.5, seed(1)) | fold(0, 3, seed(1)).complement() |
                   subset(last, between(0, 9)) | batch(4)) == 20);
  CHECK(samples_of(source | subset(last, one_of({1, 2})) | batch(4)) == 12);
  CHECK(samples_of(source | split_by_key(last, 0.5, seed(1)) | subset(last, equals(3)) | batch(4)) <= 6);
  CHECK(samples_of(source | class_balanced(last, seed(1)) | batch(4)) == 60);
  CHECK(samples_of(source | weighted(sample_list(numbers(60)), seed(1), {.num_samples = 8}) | batch(4)) == 8);
}

TEST_CASE("names: sources, fields and codecs too") {
  const penstock_test::temp_dir dir;
  penstock_test::raw_tar().member("a.cls", "1").member("a.txt", "x").end().save((dir / "s.tar").string());
  const auto plan = webdataset((dir / "s.tar").string()) | shuffle(seed(1), window(2), lanes(1)) |
                    fields<"cls", optional<"txt">> | decode<field<"cls", integer>> |
                    map<"cls">([](std::int64_t c) { return c + 1; }) | fields<"cls"> | batch(1);
  auto run = plan.open();
  for (auto&& b : run) CHECK(get<"cls">(b)[0] == 2);
  const state where = run.state();
  CHECK(to_string(where).size() > 10);
  CHECK(describe(plan).size() > 10);
  CHECK(peek(plan).size() > 10);
  CHECK(report(run.counters()).size() > 10);

  std::ofstream(dir / "four.txt") << "a\nb\nc\n";
  const std::string path = (dir / "four.txt").string();
  CHECK(samples_of(lines(path) | batch(3, ragged)) == 3);
  CHECK(samples_of(raw_tokens<std::uint16_t>(path, token_window<1>{}) | batch(2)) == 2);
  CHECK(samples_of(directory(dir.path().string(), {.extensions = {"txt"}}) | fields<"label"> | batch(1)) ==
        1);
}
