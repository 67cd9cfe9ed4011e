// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/evaluation/parts.hpp>

#include <penstock/codec/integer.hpp>
#include <penstock/codec/text.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/take.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/enumerate.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/seed.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/open_samples.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;
using penstock_test::open_samples;

namespace projection_of_test {

std::string words(const ps::projection& used) {
  if (used.everything()) return "everything";
  if (used.nothing()) return "nothing";
  std::string all;
  for (const auto name : used.names()) all.append(all.empty() ? "" : " ").append(name);
  return all;
}
template <class Plan>
std::string used_by(const Plan&) {
  return words(ps::projection_of<Plan>());
}

/// Open samples that record the projection they are connected with.
struct told_samples : open_samples {
  using open_samples::open_samples;
  std::shared_ptr<std::vector<std::string>> told = std::make_shared<std::vector<std::string>>();
  [[nodiscard]] reader connect(const ps::projection& used) const {
    told->push_back(words(used));
    return open_samples::connect();
  }
};
static_assert(ps::projecting_source<told_samples> && !ps::projecting_source<open_samples> &&
                  ps::indexed_source<told_samples> && ps::indexed_source<open_samples>,
              "a source may be told what is used, or not");

/// Records that record the projection they are connected with.
using pair_type = ps::record<ps::field<"a", int>, ps::field<"b", int>>;
struct told_records {
  using penstock_part = ps::source_tag;
  using element = pair_type;
  static constexpr std::string_view source_name = "told_records";
  struct reader {
    struct worker {};
    template <class Sink>
    void evaluate(ps::position p, worker&, Sink&& sink) const {
      sink(pair_type(static_cast<int>(p.index), -1));
    }
  };
  std::shared_ptr<std::vector<std::string>> told = std::make_shared<std::vector<std::string>>();

  [[nodiscard]] std::uint64_t size() const { return 3; }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const { return nullptr; }
  [[nodiscard]] std::string describe() const { return "told"; }
  [[nodiscard]] std::uint64_t fingerprint() const { return 3; }
  [[nodiscard]] reader connect(const ps::projection& used) const {
    told->push_back(words(used));
    return {};
  }
};

/// A user's stage that says which field it uses.
struct label_of {
  using penstock_part = ps::pointwise_tag;
  static constexpr std::string_view stage_name = "label_of";
  template <class>
  static constexpr ps::projection uses() {
    return ps::projection::of<"cls">();
  }
  template <class Sample, class Call>
  int apply(const Sample& sample, const Call&) const {
    for (std::size_t i = 0; i < sample.size(); ++i)
      if (sample.name(i) == "cls") return ps::text_of(sample.member(i).finish())[0] - '0';
    return -1;
  }
};

open_samples three() {
  return open_samples({{"k0", {{"cls", "0"}, {"txt", "x"}}},
                       {"k1", {{"cls", "1"}, {"txt", "y"}}},
                       {"k2", {{"cls", "2"}, {"txt", "z"}}}});
}
told_samples told() {
  return told_samples({{"k0", {{"cls", "0"}, {"txt", "x"}}}, {"k1", {{"cls", "1"}, {"txt", "y"}}}});
}

TEST_CASE("evaluation/projection: the first stage that looks at the sample says which fields are used") {
  const auto s = three();
  CHECK(used_by(s | ps::fields<"cls">) == "cls");
  CHECK(used_by(s | ps::fields<"jpg;jpeg;Left.PNG", ps::optional<"txt;md">, "cls">) ==
        "jpg jpeg Left.PNG txt md cls");
  CHECK(used_by(s | ps::decode<ps::field<"cls", ps::integer>, ps::field<"txt", ps::text>>) == "cls txt");
  CHECK(used_by(s | ps::decode<ps::field<"cls;class", ps::integer>, ps::field<"txt", ps::text>>) ==
        "cls class txt");
  CHECK(used_by(s | ps::fields<"cls", "txt"> | ps::decode<ps::field<"cls", ps::integer>> |
                ps::fields<"cls">) == "cls txt");
  CHECK(used_by(s | ps::shuffle(ps::seed(1)) | ps::take(2) | ps::seed(3) | ps::workers(1) |
                ps::bad_samples::skip(1) | ps::fields<"txt"> | ps::batch(2, ps::ragged)) == "txt");
}

TEST_CASE("evaluation/projection: if a stage sees the whole sample everything is used") {
  const auto s = three();
  CHECK(used_by(ps::plan(s)) == "everything");
  CHECK(used_by(s | ps::shuffle(ps::seed(1))) == "everything");
  CHECK(used_by(s | ps::map([](const auto& sample) { return sample.size(); })) == "everything");
  CHECK(used_by(s | ps::filter([](const auto&) { return true; }) | ps::fields<"cls">) == "everything");
  CHECK(used_by(s | ps::decode<ps::integer>) == "everything");  // the member is chosen by its extension
  const auto records = ps::from(std::vector<pair_type>{pair_type(1, 2)});
  CHECK(used_by(records | ps::batch(1)) == "everything");
  CHECK(used_by(records | ps::fields<"b">) == "b");
  CHECK(used_by(records | ps::map([](const pair_type& p) { return p; }) | ps::fields<"b">) == "everything");
}

TEST_CASE("evaluation/projection: a run, and everything else that reads samples, tells the source") {
  const auto s = told();
  const auto plan = s | ps::decode<ps::field<"cls", ps::integer>> | ps::batch(2) | ps::workers(0);
  std::int64_t sum = 0;
  for (auto&& b : plan)
    for (const std::int64_t x : ps::get<"cls">(b)) sum += x;
  CHECK(sum == 1);
  CHECK(*s.told == std::vector<std::string>{"cls"});
  static_cast<void>(ps::connect_source(s));
  static_cast<void>(ps::connect_source(s, ps::projection::none()));
  CHECK(*s.told == std::vector<std::string>{"cls", "everything", "nothing"});
  static_cast<void>(ps::connect_source(three(), ps::projection::none()));  // this source takes no projection
}

TEST_CASE("evaluation/projection: a user's stage says what it uses, and the batches do not change") {
  const auto s = told();
  const auto numbers = penstock_test::values_of(ps::plan(s) | label_of{} | ps::batch(1));
  CHECK(numbers == std::vector<int>{0, 1});
  CHECK(penstock_test::values_of(s | ps::map([](const auto& x) { return label_of{}.apply(x, 0); }) |
                                 ps::batch(1)) == numbers);
  CHECK(*s.told == std::vector<std::string>{"cls", "everything"});
}

TEST_CASE("evaluation/projection: mix and concat pass on what is used after them") {
  const auto a = told(), b = told();
  const auto behind = [](const auto& joint) {
    for (auto&& x : (joint | ps::fields<"cls"> | ps::batch(1) | ps::workers(0)).epoch(0))
      static_cast<void>(x);
  };
  behind(ps::concat(a, b));
  behind(ps::mix(ps::proportions{1, 1}, a, b | ps::shuffle(ps::seed(1))));
  CHECK(*a.told == std::vector<std::string>{"cls", "cls"});
  CHECK(*b.told == std::vector<std::string>{"cls", "cls"});

  // A stage inside the joint sees the sample first.
  const auto c = told(), d = told();
  const auto joint = ps::concat(c | ps::fields<"cls", "txt">, d | ps::fields<"cls", "txt">);
  for (auto&& x : (joint | ps::fields<"cls"> | ps::batch(1) | ps::workers(0)).epoch(0)) static_cast<void>(x);
  CHECK(*c.told == std::vector<std::string>{"cls txt"});
  CHECK(*d.told == std::vector<std::string>{"cls txt"});
}

TEST_CASE("evaluation/projection: zip tells each source what is used of it") {
  const auto run = [](const auto& plan) {
    for (auto&& x : (plan | ps::workers(0)).epoch(0)) static_cast<void>(x);
  };
  const told_records a, b;
  const auto named = ps::zip<"left", "right">(a, b);
  const auto left = [](const auto& s) { return ps::get<"a">(ps::get<"left">(s)); };
  run(named | ps::fields<"left"> | ps::map(left) | ps::batch(3));
  CHECK(*a.told == std::vector<std::string>{"everything"});
  CHECK(*b.told == std::vector<std::string>{"nothing"});
  run(named | ps::map(left) | ps::batch(3));
  CHECK(a.told->back() == "everything");
  CHECK(b.told->back() == "everything");

  // Without names, the fields are those of the sources.
  const told_records c;
  const auto more = ps::from(std::vector<ps::record<ps::field<"c", int>>>(3));
  run(ps::zip(c, more) | ps::fields<"b"> | ps::batch(3));
  CHECK(*c.told == std::vector<std::string>{"b"});

  // Stages between a source and zip come first.
  const told_records d, e;
  run(ps::zip<"left", "right">(d | ps::map([](const pair_type& p) { return p; }),
                               e | ps::shuffle(ps::seed(1))) |
      ps::fields<"left"> | ps::map(left) | ps::batch(3));
  CHECK(*d.told == std::vector<std::string>{"everything"});
  CHECK(*e.told == std::vector<std::string>{"nothing"});
}

}  // namespace projection_of_test
