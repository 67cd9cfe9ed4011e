// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/message.hpp>
#include <penstock/inspection/prove.hpp>
#include <penstock/order/world.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// What `prove` keeps of one topology in one epoch.
struct proved_topology {
  penstock::proof whole;  ///< its one topology, and the violations
  bool here = false;      ///< in the file of this process
};

/// The findings of `prove` in a folder, one file per process: `part-00002-of-00008`. Each is text, with one
/// line per proved topology of an epoch and one per violation. A file is always replaced by renaming, so a
/// reader finds it complete.
///
/// It reads the files of all processes, whatever their number, and writes only its own. A file of another
/// plan or other data is refused.
class proof_parts {
 public:
  proof_parts(std::filesystem::path folder, const penstock::world& here, std::uint64_t dataset,
              std::uint64_t sequence, std::string plan)
      : folder_(std::move(folder)),
        dataset_(dataset),
        sequence_(sequence),
        plan_(on_one_line(std::move(plan))) {
    if (folder_.empty()) return;
    std::filesystem::create_directories(folder_);
    char name[64];
    std::snprintf(name, sizeof name, "part-%05llu-of-%05llu", static_cast<unsigned long long>(here.rank),
                  static_cast<unsigned long long>(here.size));
    mine_ = folder_ / name;
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      if (const std::string file = entry.path().filename().string();
          file.starts_with("part-") && file.find("-of-") != std::string::npos && !file.ends_with(".partial"))
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) read(file);
  }

  /// What is known of a topology in an epoch; null if it is not proved yet.
  [[nodiscard]] const proved_topology* find(const std::string& what) const {
    const auto found = known_.find(what);
    return found == known_.end() ? nullptr : &found->second;
  }
  /// Keeps a finding, on disk too if there is a folder.
  void add(const std::string& what, penstock::proof found) {
    known_[what] = {std::move(found), true};
    if (!folder_.empty()) write();
  }

 private:
  static std::string on_one_line(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
    return text;
  }
  /// Calls f with every stored number, in the order of the file.
  template <class Proof, class F>
  static void for_each_number(Proof& p, F f) {
    auto& t = p.topologies.front();
    for (auto* number : {&t.shape.nodes, &t.shape.ranks_per_node, &t.steps, &t.delivered, &t.dropped,
                         &t.padded, &t.min_shards, &t.max_shards, &t.sum, &p.positions, &p.samples, &p.shards,
                         &p.left_out, &p.pads, &p.global})
      f(*number);
  }

  void write() const {
    const std::filesystem::path beside = mine_.string() + ".partial";
    {
      std::ofstream out(beside, std::ios::binary);
      out << "penstock proof 1\ndataset " << dataset_ << "\nsequence " << sequence_ << "\nplan "
          << std::quoted(plan_) << '\n';
      std::size_t count = 0;
      for (const auto& [what, found] : known_) {
        if (!found.here) continue;
        out << "proved " << std::quoted(what);
        for_each_number(found.whole, [&](std::uint64_t number) { out << ' ' << number; });
        out << (found.whole.sampled ? " sampled " : " all ") << found.whole.violations.size() << '\n';
        for (const std::string& one : found.whole.violations)
          out << "violation " << std::quoted(on_one_line(one)) << '\n';
        ++count;
      }
      out << "end " << count << '\n';
      out.flush();
      if (!out) throw std::runtime_error("cannot write " + beside.string());
    }
    std::filesystem::rename(beside, mine_);
  }

  void read(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::uint64_t number = 0;
    std::istringstream words;
    const auto wrong = [&] {
      return std::runtime_error(
          path.string() + ", line " + std::to_string(number) +
          ": this is no proof in parts, or it was cut or edited; remove the file, and what "
          "it says is proved again");
    };
    const auto next = [&] {
      std::string line, word;
      ++number;
      if (!std::getline(in, line)) throw wrong();
      words = std::istringstream(line);
      words >> word;
      return word;
    };
    const auto value = [&](auto&& into) {
      if (!(words >> into)) throw wrong();
    };
    std::string version, plan;
    std::uint64_t dataset = 0, sequence = 0, count = 0;
    if (next() != "penstock" || !(words >> version) || version != "proof" || !(words >> version) ||
        version != "1")
      throw wrong();
    if (next() != "dataset") throw wrong();
    value(dataset);
    if (next() != "sequence") throw wrong();
    value(sequence);
    if (next() != "plan") throw wrong();
    value(std::quoted(plan));
    if (dataset != dataset_ || sequence != sequence_)
      throw std::runtime_error(path.string() + " is the proof of another plan" +
                               (dataset != dataset_ ? ", over other data" : "") + ": " + plan +
                               ", where this one is " + plan_ + "; give another --out, or remove it");
    for (std::string word = next(); word != "end"; word = next(), ++count) {
      if (word != "proved") throw wrong();
      std::string what, looked;
      value(std::quoted(what));
      proved_topology found{{}, path == mine_};
      found.whole.topologies.resize(1);
      for_each_number(found.whole, [&](std::uint64_t& into) { value(into); });
      std::size_t violations = 0;
      value(looked);
      value(violations);
      if (looked != "all" && looked != "sampled") throw wrong();
      found.whole.sampled = looked == "sampled";
      for (; violations != 0; --violations) {
        if (next() != "violation") throw wrong();
        value(std::quoted(found.whole.violations.emplace_back()));
      }
      if (!known_.contains(what) || found.here) known_[what] = std::move(found);
    }
    std::uint64_t said = 0;
    value(said);
    if (said != count) throw wrong();
  }

  std::filesystem::path folder_, mine_;
  std::uint64_t dataset_, sequence_;
  std::string plan_;
  std::map<std::string, proved_topology> known_;
};
