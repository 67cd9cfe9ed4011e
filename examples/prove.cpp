// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Proves by arithmetic that the order of a plan is right on every number of machines you may use, before it
// runs there:
//
//   prove --data 'train-{0000..0127}.tar' --global-batch 4096 --seed 7 --window 16 --lanes 64
//         --topologies 1x8,4x8,32x8,3x7 --epochs 2 --stops 0,1000,20000
//   prove --samples 100000000 --shards 10000 ...          a dataset that does not exist yet
//   prove ... --consumed state.json [--keys yes]          which samples went into a model
//   prove ... --ledger 'bad.rank{0..7}.jsonl'             which samples were skipped or replaced
//   mpirun -np 8 prove ... --epochs 90 --out proof        many processes, resumable
//   sbatch --array=0-31 --wrap "prove ... --out proof"
//
// Exits with 1 if something does not hold. It reads indexes and no sample. For a plan with other order
// stages, call ps::prove and ps::for_each_consumed as this program does.

#include <penstock/all.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "arguments.hpp"
#include "proof_parts.hpp"

namespace ps = penstock;

namespace {

struct settings {
  std::vector<ps::topology> shapes;
  ps::proof_options options;
  std::string state_file;
  bool keys = false;
  std::vector<std::string> ledgers;
  std::string out;
  ps::world here;
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
  [[maybe_unused]] const auto reader = plan.source().connect();
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

/// The name of a topology of an epoch, with everything its proof depends on besides the plan.
std::string named(const settings& given, std::uint64_t epoch, std::size_t number) {
  const auto words = [](const ps::topology& t) {
    return std::to_string(t.nodes) + "x" + std::to_string(t.ranks_per_node);
  };
  std::string text = "epoch " + std::to_string(epoch) + ", " + words(given.shapes[number]);
  if (given.options.stops.empty()) return text;
  text += ", then " + words(given.shapes[(number + 1) % given.shapes.size()]) + " after";
  for (const std::uint64_t stop : given.options.stops) text += " " + std::to_string(stop);
  return text;
}

/// Adds the findings of one topology in one epoch to those printed at the end.
void add(ps::proof& all, const ps::proof& one) {
  const ps::topology_proof& found = one.topologies.front();
  const bool known = std::any_of(all.topologies.begin(), all.topologies.end(), [&](const auto& t) {
    return t.shape.nodes == found.shape.nodes && t.shape.ranks_per_node == found.shape.ranks_per_node;
  });
  if (all.topologies.empty()) {
    all = one;
    return;
  }
  if (!known) all.topologies.push_back(found);
  for (const std::string& violation : one.violations)
    if (std::find(all.violations.begin(), all.violations.end(), violation) == all.violations.end())
      all.violations.push_back(violation);
}

std::string in_one(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " | ") + word;
  return text;
}

/// Proves this process's part of all pairs (epoch, topology), except those proved already. The part is
/// contiguous in the order of epochs, because most of the cost of an epoch is its order, which is computed
/// once for all its topologies.
template <class Plan>
int prove_part(const Plan& plan, const settings& given) {
  proof_parts parts(given.out, given.here, plan.source().fingerprint(), ps::sequence_fingerprint(plan),
                    in_one(ps::sequence_words(plan)));
  struct task {
    std::uint64_t epoch;
    std::size_t number;
    std::string what;
  };
  std::vector<task> tasks;
  std::set<std::string> told;
  for (std::uint64_t epoch = 0; epoch < given.options.epochs; ++epoch)
    for (std::size_t number = 0; number < given.shapes.size(); ++number)
      if (std::string what = named(given, epoch, number); told.insert(what).second)
        tasks.push_back({epoch, number, std::move(what)});
  const std::size_t ranks = static_cast<std::size_t>(given.here.size),
                    rank = static_cast<std::size_t>(given.here.rank);
  const auto share = [&](std::size_t r) {
    return tasks.size() / ranks * r + tasks.size() % ranks * r / ranks;
  };
  const std::size_t first = share(rank), last = share(rank + 1);

  const auto begin = std::chrono::steady_clock::now();
  std::size_t there = 0;
  for (std::size_t i = first; i < last;) {
    ps::proof_options options = given.options;
    options.first_epoch = tasks[i].epoch;
    options.epochs = 1;
    for (; i < last && tasks[i].epoch == options.first_epoch; ++i) {
      if (parts.find(tasks[i].what) != nullptr)
        ++there;
      else
        options.only.push_back(tasks[i].number);
    }
    if (options.only.empty()) continue;
    static_cast<void>(ps::prove(plan, given.shapes, options, [&](const ps::proof_part& one) {
      ps::proof found = one.whole;
      found.topologies = {one.found};
      found.violations = one.violations;
      const std::string what = named(given, one.epoch, static_cast<std::size_t>(one.number));
      parts.add(what, std::move(found));
      if (!given.out.empty()) std::cout << "proved " << what << std::endl;
    }));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;

  ps::proof all;
  for (std::size_t i = first; i < last; ++i) add(all, parts.find(tasks[i].what)->whole);
  std::ostringstream text;  // printed in one piece, because other processes print too
  if (first != last) text << to_string(all);
  if (last - first > there) text << "in " << took.count() << " s\n";
  if (given.here.size != 1 || !given.out.empty())
    text << "rank " << given.here.rank << " of " << given.here.size << " (" << given.here.launcher
         << "): " << last - first - there << " topologies proved, " << there << " were there\n";
  std::cout << text.str() << std::flush;
  return all.holds() ? 0 : 1;
}

/// Arithmetic cannot find substitutions: only the ledgers of `bad_samples` name them. One process reads them.
template <class Plan>
int prove_ledgers(const Plan& plan, const settings& given) {
  if (given.here.rank != 0) return 0;
  if (given.ledgers.empty()) {
    std::cout << "substitutions: none named; give --ledger\n";
    return 0;
  }
  ps::bad_entries all;
  for (const std::string& pattern : given.ledgers)
    for (const std::string& name : ps::file_names(pattern)) {
      ps::bad_entries more = ps::read_bad_ledger(name);
      std::move(more.all.begin(), more.all.end(), std::back_inserter(all.all));
      all.cut += more.cut;
    }
  const ps::ledger_proof found = ps::prove_ledger(plan, all.all);
  std::cout << to_string(found, [&](std::uint64_t number) {
    if constexpr (requires { plan.source().manifest(); })
      return plan.source().manifest().shards()[number].name;
    else
      return number;
  });
  if (all.cut != 0) std::cout << all.cut << " lines of the ledgers were cut\n";
  return found.holds() ? 0 : 1;
}

template <class Plan>
int work(const Plan& plan, const settings& given) {
  if (given.state_file.empty()) {
    const int order = prove_part(plan, given), ledgers = prove_ledgers(plan, given);
    return std::max(order, ledgers);
  }
  if (given.here.rank == 0) list_consumed(plan, given);
  return 0;
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
  if (window == 0) return work(source | ps::shuffle(ps::seed(seed)) | cut, set);
  return work(source | ps::shuffle(ps::seed(seed), ps::window(window), ps::lanes(lanes)) | cut, set);
}

constexpr const char* usage =
    "prove --data PATTERN | --samples N --shards S; --order shuffle|sequential, --seed N, --window W, "
    "--lanes C, --global-batch G, --tail keep|drop|pad, --topologies 1x8,4x8,..., --epochs N, --stops "
    "S,S,..., --threads N, --out DIR, --ledger FILE (may be repeated), --consumed STATE, --keys yes";

constexpr const char* help =
    "\n\n"
    "Several processes of a launcher, or the tasks of a Slurm job array, share the work: each has a run of\n"
    "neighbours among all topologies of epoch 0, then of epoch 1, and so on. A topology of an epoch is one\n"
    "piece, with all its stops; each process computes the order of every epoch it has a topology of. So "
    "many\n"
    "processes are worth it for many epochs, or many topologies. One that finds a violation exits with 1.\n\n"
    "With --out DIR each keeps what it found in DIR/part-RRRRR-of-WWWWW, and what stands in any such file "
    "there\n"
    "is not proved again: whatever was killed is started again, with any number of processes, and does the\n"
    "rest. Started once more by one process it proves nothing and prints all. One job at a time has a DIR.\n"
    "A DIR with the proof of another plan, or of other data, is refused.\n\n"
    "--ledger FILE, a name or a pattern, is what bad_samples wrote: prints how many samples were skipped "
    "and\n"
    "replaced on each rank and in each shard, and checks that the plan has each of them there, that what\n"
    "stands in for one is what the plan draws for it, and that no position had two outcomes. A sample that\n"
    "was delivered again after a restart counts once.\n";

int run(int count, char** values) {
  if (asked_for_help(count, values, std::string(usage) + help)) return 0;
  arguments given(count, values, usage);
  settings set;
  set.state_file = given.text("consumed", "");
  set.keys = given.text("keys", "no") == "yes";
  set.out = given.text("out", "");
  set.ledgers = given.texts("ledger");
  set.here = ps::world::from_environment({.slurm_array = true});
  set.shapes = listed<ps::topology>(given.text("topologies", "1x1,1x8,4x8"), shape);
  set.options.stops = listed<std::uint64_t>(given.text("stops", ""), number);
  set.options.epochs = given.number("epochs", 1);
  if (set.options.epochs == 0) throw std::runtime_error("--epochs 0 proves nothing; give 1 or more");
  set.options.threads = static_cast<unsigned>(given.number(
      "threads", std::max<std::uint64_t>(1, ps::usable_processors() / set.here.local_size), max_workers));
  if (const std::string data = given.text("data", ""); !data.empty())
    return with_order(ps::webdataset(data) | ps::map([](const auto&) { return 0; }), given, set);

  const std::uint64_t samples = number(given.text("samples")), shards = given.number("shards", 1);
  if (shards == 0) throw std::runtime_error("--shards 0: samples stand in one shard at least");
  // Unequal, like real shards: up to a quarter more or less than their share.
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
