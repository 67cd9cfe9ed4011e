// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Proves by arithmetic that a plan's order holds on all the machines it may ever run on, before it runs
// there:
//
//   prove --data 'train-{0000..0127}.tar' --global-batch 4096 --seed 7 --window 16 --lanes 64
//         --topologies 1x8,4x8,32x8,3x7 --epochs 2 --stops 0,1000,20000
//   prove --samples 100000000 --shards 10000 ...          a dataset that is not there yet
//   prove ... --consumed state.json [--keys yes]          which samples went into a model
//
// Exits with 1 where something does not hold. Reads indexes, no sample. A plan with other order stages calls
// ps::prove and ps::for_each_consumed itself, as is done here.

#include <penstock/penstock.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "arguments.hpp"

namespace ps = penstock;

namespace {

struct settings {
  std::vector<ps::topology> shapes;
  ps::proof_options options;
  std::string state_file;
  bool keys = false;
};

/// "1,2,3" to numbers, each made by `read`.
template <class T, class Read>
std::vector<T> listed(const std::string& text, Read read) {
  std::vector<T> all;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    all.push_back(read(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return all;
}
std::uint64_t number(const std::string& text) {
  std::size_t used = 0;
  std::uint64_t value = 0;
  try {
    value = std::stoull(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || text[0] == '-')
    throw std::runtime_error("'" + text + "' is no whole number");
  return value;
}
ps::topology shape(const std::string& text) {
  const std::size_t by = text.find('x');
  if (by == std::string::npos) return {1, number(text)};
  return {number(text.substr(0, by)), number(text.substr(by + 1))};
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What was delivered: ranges within each shard, or keys.
template <class Plan>
void list_consumed(const Plan& plan, const settings& given) {
  const ps::state where = ps::state_from_string(read_file(given.state_file));
  [[maybe_unused]] const auto reader = plan.source().open();
  ps::for_each_consumed(plan, where, [&](ps::consumed_range range) {
    if constexpr (requires { plan.source().manifest(); }) {
      const auto& shards = plan.source().manifest();
      while (range.count != 0) {
        const auto at = shards.locate(range.first);
        const auto& shard = shards.shards()[at.shard];
        const std::uint64_t count = std::min(range.count, shard.samples - at.sample);
        if (given.keys) {
          for (std::uint64_t i = 0; i < count; ++i)
            std::cout << range.epoch << ' ' << shard.name << ' ' << reader.key(range.first + i) << '\n';
        } else {
          std::cout << range.epoch << ' ' << shard.name << ' ' << at.sample << '-' << at.sample + count - 1
                    << '\n';
        }
        range.first += count;
        range.count -= count;
      }
    } else {
      std::cout << range.epoch << ' ' << range.first << '-' << range.first + range.count - 1 << '\n';
    }
  });
}

template <class Plan>
int work(const Plan& plan, const settings& given) {
  if (!given.state_file.empty()) {
    list_consumed(plan, given);
    return 0;
  }
  const auto begin = std::chrono::steady_clock::now();
  const ps::proof found = ps::prove(plan, given.shapes, given.options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cout << to_string(found) << "in " << took.count() << " s\n";
  return found.holds() ? 0 : 1;
}

template <class Source>
int with_order(const Source& source, arguments& given, const settings& set) {
  const std::uint64_t seed = given.number("seed", 0), window = given.number("window", 0),
                      lanes = given.number("lanes", 1), global = given.number("global-batch", 1024);
  const std::string order = given.text("order", "shuffle"), at_end = given.text("tail", "keep");
  given.done();
  if (at_end != "keep" && at_end != "drop" && at_end != "pad")
    throw std::runtime_error("--tail is keep, drop or pad, not '" + at_end + "'");
  if (order != "shuffle" && order != "sequential")
    throw std::runtime_error("--order is shuffle or sequential, not '" + order + "'");
  const auto cut = ps::global_batch(global, at_end == "keep"   ? ps::tail::keep
                                            : at_end == "drop" ? ps::tail::drop
                                                               : ps::tail::pad);
  if (order == "sequential") return work(source | cut, set);
  if (window == 0) return work(source | ps::shuffle(seed) | cut, set);
  return work(source | ps::shuffle(seed, ps::window(window), ps::lanes(lanes)) | cut, set);
}

int run(int count, char** values) {
  arguments given(
      count, values,
      "prove --data PATTERN | --samples N --shards S; --order shuffle|sequential, --seed N, --window W, "
      "--lanes C, --global-batch G, --tail keep|drop|pad, --topologies 1x8,4x8,..., --epochs N, --stops "
      "S,S,..., --threads N, --consumed STATE, --keys yes");
  settings set;
  set.state_file = given.text("consumed", "");
  set.keys = given.text("keys", "no") == "yes";
  set.shapes = listed<ps::topology>(given.text("topologies", "1x1,1x8,4x8"), shape);
  set.options.stops = listed<std::uint64_t>(given.text("stops", ""), number);
  set.options.epochs = given.number("epochs", 1);
  set.options.threads = static_cast<unsigned>(given.number("threads", ps::usable_processors()));
  if (const std::string data = given.text("data", ""); !data.empty())
    return with_order(ps::webdataset(data) | ps::map([](const auto&) { return 0; }), given, set);

  const std::uint64_t samples = number(given.text("samples")), shards = given.number("shards", 1);
  if (shards == 0) throw std::runtime_error("--shards 0: samples stand in one shard at least");
  // Unequal ones, as real shards are: up to a quarter more or less than their share.
  std::vector<std::uint64_t> starts{0};
  for (std::uint64_t s = 1; s < shards; ++s) {
    const std::uint64_t each = samples / shards, wobble = each / 4;
    starts.push_back(s * each + (wobble == 0 ? 0 : ps::mix64(s) % wobble));
  }
  starts.push_back(samples);
  return with_order(ps::generated(
                        samples, [](std::uint64_t i) { return i; }, starts),
                    given, set);
}

}  // namespace

int main(int count, char** values) {
  try {
    return run(count, values);
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 2;
  }
}
