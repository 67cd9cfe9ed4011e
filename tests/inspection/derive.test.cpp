// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/codec/integer.hpp>
#include <penstock/inspection/derive.hpp>
#include <penstock/order/class_balanced.hpp>
#include <penstock/order/fold.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/order/split.hpp>
#include <penstock/order/split_by_key.hpp>
#include <penstock/order/subset.hpp>
#include <penstock/order/weighted.hpp>
#include <penstock/source/concat.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/source/mix.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/prefetch.hpp>
#include <penstock/stage/workers.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/collect.hpp"
#include "support/deadline.hpp"
#include "support/raw_tar.hpp"
#include "support/resume_test.hpp"
#include "support/temp_dir.hpp"

namespace derive_test {

namespace ps = penstock;
namespace fs = std::filesystem;
using penstock_test::contains;
using penstock_test::error_of;

namespace {

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::size_t files_in(const penstock_test::temp_dir& dir) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(dir.path()), {}));
}
std::vector<int> numbers(int n, int first = 0) {
  std::vector<int> all;
  for (int i = 0; i < n; ++i) all.push_back(first + i);
  return all;
}
constexpr auto rest_of_seven = [](int x) { return x % 7 - 3; };

}  // namespace

TEST_CASE("inspection/derive: evaluates each sample once, and then reads the file") {
  const penstock_test::temp_dir dir;
  const auto source = ps::from(numbers(1000));
  std::atomic<int> calls{0};
  const auto f = [&calls](int x) {
    ++calls;
    return x % 7 - 3;
  };
  const auto made = ps::derive(source, "rest", f, dir.path().string());
  CHECK(calls == 1000);
  CHECK(made.origin() == ps::derived_from::none);
  CHECK(made.path() == (dir / "rest.penstock-values").string());
  CHECK(made.dataset() == source.fingerprint());
  REQUIRE(made.size() == 1000);
  bool right = true;
  for (std::uint64_t i = 0; i < 1000; ++i) right = right && made[i] == static_cast<std::int64_t>(i) % 7 - 3;
  CHECK(right);
  const auto again = ps::derive(source, "rest", f, made.path());
  CHECK(calls == 1000);
  CHECK(again.origin() == ps::derived_from::file);
  CHECK(again.fingerprint() == made.fingerprint());
  CHECK(files_in(dir) == 1);
}

TEST_CASE("inspection/derive: equal bytes with any number of workers") {
  const penstock_test::temp_dir dir;
  const auto source = ps::generated(5000, engine_test::identity) | ps::map(engine_test::slowly{});
  const auto name_of = [](std::uint64_t x) { return "group-" + std::to_string(x * x % 101); };
  std::string first;
  for (const unsigned workers : {0u, 1u, 2u, 7u}) {
    const std::string path = (dir / std::to_string(workers)).string();
    (void)ps::derive(source | ps::workers(workers), "group", name_of, path);
    if (first.empty()) first = read(path);
    CHECK(read(path) == first);
  }
}

TEST_CASE("inspection/derive: numbers, enumerators and texts keep their types") {
  const penstock_test::temp_dir dir;
  const auto source = ps::from(numbers(10));
  const auto derived = [&](const std::string& name, const auto& f) {
    return ps::derive(source, name, f, dir.path().string());
  };
  enum class side : std::uint8_t { left, right };
  const ps::derived_index<std::uint64_t> odd = derived("odd", [](int x) { return x % 2 == 1; });
  CHECK(odd[3] == 1);
  const ps::derived_index<std::uint64_t> sides =
      derived("side", [](int x) { return x < 5 ? side::left : side::right; });
  CHECK(sides[7] == 1);
  const ps::derived_index<double> half = derived("half", [](int x) { return static_cast<float>(x) / 2; });
  CHECK(half[3] == 1.5);
  const ps::derived_index<std::string> literal =
      derived("text", [](int x) { return x < 5 ? "low" : "high"; });
  CHECK(literal[4] == "low");
  CHECK(literal[5] == "high");
  const ps::derived_index<std::string> keys =
      derived("key", [](int x, std::string_view key) { return std::string(key) + ":" + std::to_string(x); });
  CHECK(keys[3] == "3:3");
  struct scored {
    int value;
    [[nodiscard]] double half() const { return value / 2.0; }
  };
  const auto scores = ps::from(std::vector<scored>{{3}, {4}});
  const ps::derived_index<std::int64_t> read =
      ps::derive(scores, "read", &scored::value, dir.path().string());
  CHECK(read[1] == 4);
  const ps::derived_index<double> called = ps::derive(scores, "called", &scored::half, dir.path().string());
  CHECK(called[0] == 1.5);
  CHECK(ps::derive(ps::from(std::vector<int>{}), "none", rest_of_seven, dir.path().string()).size() == 0);
}

TEST_CASE("inspection/derive: samples of shards, with their keys, whole or decoded") {
  const penstock_test::temp_dir dir;
  penstock_test::raw_tar archive;
  for (int i = 0; i < 20; ++i)
    archive.member("p" + std::to_string(i % 4) + "/s" + std::to_string(i) + ".cls", std::to_string(i * i));
  archive.end();
  const std::string path = (dir / "a.tar").string();
  archive.save(path);
  const ps::webdataset source(path);
  const auto patient = ps::derive(
      source, "patient",
      [](const auto&, std::string_view key) { return std::string(key.substr(0, key.find('/'))); },
      dir.path().string());
  CHECK(patient[7] == "p3");
  const auto decoded = source | ps::decode<ps::field<"cls", ps::integer>>;
  const auto square = ps::derive(
      decoded, "square", [](const auto& s) { return ps::get<"cls">(s); }, dir.path().string());
  CHECK(square[7] == 49);
  const auto both = ps::derive(
      decoded, "both",
      [](const auto& s, std::string_view key) {
        return std::string(key) + std::to_string(ps::get<"cls">(s));
      },
      dir.path().string());
  CHECK(both[7] == "p3/s749");
  const auto train = ps::split_by_key(patient, 0.5, ps::seed(1));
  const auto loader = decoded | train | ps::map([](const auto& s) { return ps::get<"cls">(s); });
  std::uint64_t met = 0;
  for (const std::int64_t x : penstock_test::values_of(loader)) met += x >= 0 ? 1u : 0u;
  CHECK(met == train.size());
}

TEST_CASE("inspection/derive: another state of the dataset, damage and other files") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "x").string();
  const auto source = ps::from(numbers(50)), other = ps::from(numbers(50, 1));
  (void)ps::derive(source, "rest", rest_of_seven, path);
  const std::string good = read(path);

  CHECK_THAT(error_of([&] { (void)ps::derive(other, "rest", rest_of_seven, path, {.rebuild = false}); }),
             contains("another state of it") && contains(path) && contains("offset 24"));
  CHECK(read(path) == good);
  const auto made = ps::derive(other, "rest", rest_of_seven, path);
  CHECK(made.origin() == ps::derived_from::stale);
  CHECK(made[0] == -2);
  CHECK(ps::derive(other, "rest", rest_of_seven, path).origin() == ps::derived_from::file);

  std::ofstream(path, std::ios::binary | std::ios::trunc) << good.substr(0, 200);
  CHECK_THAT(error_of([&] { (void)ps::derive(source, "rest", rest_of_seven, path, {.rebuild = false}); }),
             contains("has 200 bytes"));
  CHECK(ps::derive(source, "rest", rest_of_seven, path).origin() == ps::derived_from::damage);
  CHECK(read(path) == good);

  CHECK_THAT(error_of([&] { (void)ps::derive(source, "label", rest_of_seven, path); }),
             contains("is called 'rest' and not 'label'"));
  CHECK_THAT(error_of([&] {
               (void)ps::derive(
                   source, "rest", [](int x) { return x * 0.5; }, path);
             }),
             contains("has values of std::int64_t and not of double"));
  std::ofstream(path, std::ios::binary | std::ios::trunc) << "my thesis";
  CHECK_THAT(error_of([&] { (void)ps::derive(source, "rest", rest_of_seven, path); }),
             contains("this is not a derived index"));
  CHECK(read(path) == "my thesis");
  std::string newer = good;
  newer[8] = 9;
  std::ofstream(path, std::ios::binary | std::ios::trunc) << newer;
  CHECK_THAT(error_of([&] { (void)ps::derive(source, "rest", rest_of_seven, path); }),
             contains("is of version 9"));
  CHECK(read(path) == newer);
  CHECK(files_in(dir) == 1);
}

TEST_CASE("inspection/derive: impossible names and places") {
  const penstock_test::temp_dir dir;
  const auto source = ps::from(numbers(5));
  CHECK_THAT(error_of([&] { (void)ps::derive(source, "", rest_of_seven, dir.path().string()); }),
             contains("must have a name"));
  CHECK_THAT(error_of([&] { (void)ps::derive(source, "a/b", rest_of_seven, dir.path().string()); }),
             contains("'a/b' is not a file name"));
  CHECK(ps::derive(source, "a/b", rest_of_seven, (dir / "ab").string()).name() == "a/b");
  CHECK_THAT(error_of([&] { (void)ps::derive(source, "a", rest_of_seven, (dir / "none/x").string()); }),
             contains("cannot create") && contains("name a file in a writable folder"));
}

TEST_CASE("inspection/derive: an exception of the function passes through, and no file is left") {
  const penstock_test::temp_dir dir;
  const auto source = ps::from(numbers(500));
  for (const unsigned workers : {0u, 3u}) {
    const auto f = [](int x) {
      if (x == 333) throw std::runtime_error("no label");
      return x;
    };
    CHECK_THROWS_AS((void)ps::derive(source | ps::workers(workers), "x", f, dir.path().string()),
                    ps::nested_error);
    CHECK(files_in(dir) == 0);
  }
}

TEST_CASE("inspection/derive: a full disk is an error, and no file is left") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "x").string();
  const auto source = ps::from(numbers(5000));
  for (const rlim_t maximum :
       {rlim_t{0}, rlim_t{1}, rlim_t{127}, rlim_t{128}, rlim_t{4096}, rlim_t{40'000}}) {
    const int code = penstock_test::in_child([&] {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{maximum, maximum};
      if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
      try {
        (void)ps::derive(source | ps::workers(0), "x", rest_of_seven, path);
      } catch (const ps::error& e) {
        return e.code() == ps::errc::io && std::string(e.what()).find("cannot write") != std::string::npos
                   ? 0
                   : 3;
      }
      return 1;
    });
    INFO("a file may have " << maximum << " bytes");
    CHECK(code == 0);
    CHECK(files_in(dir) == 0);
  }
  CHECK(ps::derive(source, "x", rest_of_seven, path).size() == 5000);
}

TEST_CASE("inspection/derive: a process that is killed leaves no file, and the next one makes it") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "x").string();
  const auto source = ps::from(numbers(2000));
  for (const int last : {0, 700, 1999}) {
    const int code = penstock_test::in_child([&] {
      (void)ps::derive(
          source | ps::workers(0), "x",
          [&](int x) {
            if (x == last) ::kill(::getpid(), SIGKILL);
            return x;
          },
          path);
      return 0;
    });
    CHECK(code == 1000 + SIGKILL);
    CHECK_FALSE(fs::exists(path));
  }
  std::ofstream(path + ".tmp-1-2") << "what a killed process had written";
  CHECK(ps::derive(
            source, "x", [](int x) { return x; }, path)[1234] == 1234);
  CHECK(files_in(dir) == 1);
}

TEST_CASE("inspection/derive: of several threads and processes only one makes the index") {
  const penstock_test::deadline guard("derive in many threads");
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "x").string();
  const auto source = ps::from(numbers(3000));
  std::atomic<int> calls{0}, made{0}, wrong{0};
  const auto want = [&] {
    const auto index = ps::derive(
        source | ps::workers(1), "x",
        [&](int x) {
          ++calls;
          return x;
        },
        path);
    if (index.origin() == ps::derived_from::none) ++made;
    if (index.size() != 3000 || index[2999] != 2999) ++wrong;
  };
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < 6; ++i) all.emplace_back(want);
  }
  CHECK(calls == 3000);
  CHECK(made == 1);
  CHECK(wrong == 0);
  CHECK(files_in(dir) == 1);
}

TEST_CASE("inspection/derive: plans over an index are elastic, and resume from every step") {
  const penstock_test::deadline guard("sampling");
  const penstock_test::temp_dir dir;
  const auto samples = ps::generated(90, engine_test::identity);
  const auto label = ps::derive(
      samples, "label", [](std::uint64_t x) { return x * x % 5; }, dir.path().string());
  const auto source = samples | ps::map(engine_test::noisy);
  const auto check = [&](const auto& stage) {
    const auto plan = source | stage;
    static_assert(ps::elastic<decltype(plan)> && ps::indexed<decltype(plan)> &&
                      ps::resumable<decltype(plan)> && ps::lockstep<decltype(plan)> &&
                      ps::deterministic<decltype(plan)>,
                  "all five are kept");
    engine_test::check_all_stops(plan | ps::batch(7));
    for (const std::uint64_t before : {1u, 2u, 8u}) {
      for (const std::uint64_t after : {1u, 2u, 4u, 8u}) {
        engine_test::check_elastic(
            [&](std::uint64_t rank, std::uint64_t world, std::uint64_t b) {
              return plan | ps::shard(rank, world) | ps::batch(b);
            },
            8, before, after, 2);
      }
    }
  };
  SECTION("split") { check(ps::split(0.7, ps::seed(3))); }
  SECTION("the rest of a split") { check(ps::split(0.3, ps::seed(3)).complement()); }
  SECTION("fold") { check(ps::fold(1, 3, ps::seed(7)).complement()); }
  SECTION("subset") { check(ps::subset(label, ps::one_of({0, 1}))); }
  SECTION("split_by_key") { check(ps::split_by_key(label, 0.6, ps::seed(5))); }
  SECTION("class_balanced") { check(ps::class_balanced(label, ps::seed(3))); }
  SECTION("weighted") { check(ps::weighted(label, ps::seed(3))); }
}

TEST_CASE(
    "inspection/derive: of joined sources, parts can choose by values, and so can the whole if its numbers "
    "are fixed") {
  const penstock_test::temp_dir dir;
  const auto a = ps::from(numbers(50)), b = ps::from(numbers(30, 1000));
  const auto of_a = ps::derive(a, "a", rest_of_seven, dir.path().string());
  const auto joined = ps::concat(a, b);
  const auto of_both = ps::derive(
      joined, "both", [](int x, std::string_view key) { return std::to_string(x) + " " + std::string(key); },
      dir.path().string());
  REQUIRE(of_both.size() == 80);
  CHECK(of_both[51] == "1001 1");
  const auto late = ps::subset(of_both, [](std::string_view v) { return v.size() > 5; });
  CHECK(penstock_test::values_of(joined | late).size() == 30);
  const auto some = a | ps::subset(of_a, ps::equals(2));
  CHECK(ps::concat(some, b).size() == 7 + 30);
  const auto mixed = ps::mix(ps::weights{1, 1}, some, b) | ps::subset(of_both, ps::equals(""));
  CHECK_THAT(error_of([&] { (void)mixed.open(); }), contains("or mix that changes from epoch to epoch"));
}

TEST_CASE("inspection/derive: an index of another dataset is refused when a plan is opened") {
  const penstock_test::temp_dir dir;
  const auto source = ps::from(numbers(50));
  const auto index = ps::derive(source, "x", rest_of_seven, dir.path().string());
  const auto plan = ps::from(numbers(50, 1)) | ps::class_balanced(index, ps::seed(1)) | ps::batch(5);
  CHECK_THAT(error_of([&] { (void)plan.open(); }),
             contains("this is not the dataset from which index 'x' was made") && contains("class_balanced"));
  const auto state = (source | ps::subset(index, ps::equals(1)) | ps::batch(2)).open().state();
  CHECK_THAT(error_of([&] { (void)(source | ps::subset(index, ps::equals(2)) | ps::batch(2)).open(state); }),
             contains("it is of another sequence"));
  const auto late = source | ps::shuffle(ps::seed(1)) | ps::subset(index, ps::equals(1));
  CHECK_THAT(error_of([&] { (void)late.open(); }), contains("write subset before it"));
}

}  // namespace derive_test
