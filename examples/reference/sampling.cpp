// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Parts of a dataset: training and validation by patient, balanced classes, draws by weight. What these need
// to know of each sample is computed once and kept in a file beside the shards.

#include <penstock/all.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "made_up_shards.hpp"

namespace ps = penstock;

namespace {

int wrong = 0;

void expect(bool right, const char* what) {
  if (right) return;
  std::printf("wrong: %s\n", what);
  ++wrong;
}

/// Four scans of each patient follow each other: "17" is one of patient 4.
std::int64_t patient_of(std::string_view key) { return std::stoll(std::string(key)) / 4; }

/// The keys that a plan delivers.
template <class Plan>
std::vector<std::string> keys_of(const Plan& plan) {
  std::vector<std::string> all;
  for (const auto& sample : plan.epoch(0)) all.emplace_back(sample.key());
  return all;
}

}  // namespace

int main() {
  const made_up_shards here("sampling", 3, 80);
  const ps::webdataset source("train-{0000..0002}.tar");

  // Evaluated here, in parallel. If you start the program again, it maps the two files and evaluates nothing.
  const auto patient = ps::derive(
      source, "patient", [](const auto&, std::string_view key) { return patient_of(key); }, ".");
  const auto label = ps::derive(
      source | ps::decode<ps::field<"cls", ps::integer>>, "label",
      [](const auto& sample) { return ps::get<"cls">(sample); }, ".");
  expect(patient.origin() == ps::derived_from::none, "it was made");
  expect(ps::open_derived<std::int64_t>("label.penstock-values").size() == 240, "and is kept");

  // No patient is on both sides, and every sample is on one.
  const auto train = source | ps::split_by_key(patient, 0.8, ps::seed(7));
  const auto valid = source | ps::split_by_key(patient, 0.8, ps::seed(7)).complement();
  std::set<std::int64_t> trained;
  for (const std::string& key : keys_of(train)) trained.insert(patient_of(key));
  const auto validated = keys_of(valid);
  for (const std::string& key : validated) expect(!trained.contains(patient_of(key)), "sides are apart");
  expect(keys_of(train).size() + validated.size() == 240, "nobody is left out");

  // Classes equally often: the digits 0 to 2 of the training side.
  const auto loader = train | ps::subset(label, ps::between(0, 2)) | ps::class_balanced(label, ps::seed(1)) |
                      ps::decode<ps::field<"cls", ps::integer>> | ps::batch(16);
  static_assert(ps::indexed<decltype(loader)> && ps::elastic<decltype(loader)>);
  std::map<std::int64_t, std::size_t> met;
  for (auto&& b : loader.epoch(0))
    for (const std::int64_t digit : ps::get<"cls">(b)) ++met[digit];
  expect(met.size() == 3 && met[0] == met[1] && met[1] == met[2], "classes are balanced");

  // By weight, with replacement: class 7 twelve times as often as each other class.
  std::vector<double> weights;
  for (std::uint64_t i = 0; i < label.size(); ++i) weights.push_back(label[i] == 7 ? 12 : 1);
  std::size_t sevens = 0, drawn = 0;
  for (const std::string& key : keys_of(source | ps::weighted(weights, ps::seed(3), {.num_samples = 1000}))) {
    sevens += std::stoi(key) % 10 == 7 ? 1u : 0u;
    ++drawn;
  }
  expect(drawn == 1000 && sevens > 500 && sevens < 640, "about 12 of 21 draws");

  // Without knowing anything about the samples.
  expect(keys_of(source | ps::split(0.75, ps::seed(1))).size() == 180, "three of four");
  expect(keys_of(source | ps::fold(0, 5, ps::seed(1))).size() == 48, "one fold of five");
  const auto first = ps::subset(ps::shard_names(source), ps::equals("train-0000.tar"));
  expect(keys_of(source | first).size() == 80, "the first shard");

  if (wrong == 0)
    std::printf("%zu samples to train, %zu to validate\n", 240 - validated.size(), validated.size());
  return wrong == 0 ? 0 : 1;
}
