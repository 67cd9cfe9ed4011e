// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Exceptions of functions that a program gives to a plan: where they happened, and the original inside;
// memory that cannot be had; and shapes that do not stack, with the file and what to write.

#include <penstock/codec/text.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/directory.hpp>
#include <penstock/source/from.hpp>
#include <penstock/source/generated.hpp>
#include <penstock/stage/bad_samples.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/filter.hpp>
#include <penstock/stage/map.hpp>
#include <penstock/stage/map_batch.hpp>
#include <penstock/stage/shuffle_buffer.hpp>
#include <penstock/stage/unbatch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

namespace user_exceptions_test {

namespace ps = penstock;
using penstock_test::contains;

namespace {

/// An exception that only a program knows.
struct own_trouble {
  int number;
};

struct files {
  penstock_test::temp_dir folder;
  files() {
    for (const char* const name : {"cat/1.txt", "cat/2.txt", "dog/3.txt", "dog/4.txt"}) {
      std::filesystem::create_directories((folder / name).parent_path());
      std::ofstream(folder / name) << "text " << name
                                   << (std::string(name) == "dog/3.txt" ? " and more" : "");
    }
  }
};

/// The nested error with which a plan ends; checks that the original comes out of it.
template <class Original, class Plan>
ps::nested_error nested_of(const Plan& plan) {
  auto run = plan.open();
  try {
    while (true) {
      auto next = run.next();
      if (next.failure != nullptr) std::rethrow_exception(next.failure);
      REQUIRE(next);
    }
  } catch (const ps::nested_error& e) {
    CHECK(e.code() == ps::errc::exception);
    CHECK(e.as<Original>() != nullptr);
    CHECK(e.as<std::bad_cast>() == nullptr);
    CHECK_THROWS_AS(std::rethrow_if_nested(static_cast<const ps::error&>(e)), Original);
    CHECK(run.stopped());
    return e;
  }
}

}  // namespace

TEST_CASE("run/user_exceptions: file, key, position and stage, with the original inside") {
  const files data;
  const auto images = ps::directory(data.folder.path().string()) | ps::decode<ps::field<"bytes", ps::text>>;
  for (const unsigned workers : {0u, 2u}) {
    INFO(workers << " workers");
    const auto fails = [](const auto& record) -> std::size_t {
      const std::string_view text = ps::get<"bytes">(record);
      if (text.find("dog/3") != text.npos) throw std::out_of_range("map::at");
      return text.size();
    };
    const auto check = [](const ps::nested_error& e, std::string_view stage) {
      CHECK(e.stage() == stage);
      CHECK(e.key() == "dog/3.txt");
      CHECK_THAT(std::string(e.file()), contains("dog/3.txt"));
      REQUIRE(e.at().has_value());
      CHECK(e.at()->index == 2);
      CHECK_THAT(std::string(e.what()), contains("this sample ended with an exception: map::at [stage"));
    };
    check(nested_of<std::out_of_range>(images | ps::map(fails) | ps::batch(2) | ps::workers(workers)), "map");
    check(nested_of<std::out_of_range>(images | ps::filter([fails](const auto& r) { return fails(r) != 0; }) |
                                       ps::map([](const auto&) { return 1; }) | ps::batch(2) |
                                       ps::workers(workers)),
          "filter");
    // a bad sample is one thing, a function that fails another
    check(nested_of<std::out_of_range>(images | ps::map(fails) | ps::bad_samples::skip(4) | ps::batch(2) |
                                       ps::workers(workers)),
          "map");
    const auto mapped = nested_of<own_trouble>(images | ps::map([](const auto&) { return 1; }) |
                                               ps::batch(2) | ps::map_batch([](auto& columns) {
                                                 if (columns.step() == 1) throw own_trouble{7};
                                               }) |
                                               ps::workers(workers));
    CHECK(mapped.stage() == "map_batch");
    CHECK(mapped.as<own_trouble>()->number == 7);
    CHECK_THAT(std::string(mapped.what()), contains("an object that is no std::exception"));

    const auto numbers = ps::generated(20, [](std::uint64_t i) {
      if (i == 13) throw std::runtime_error("no thirteen");
      return static_cast<float>(i);
    });
    const auto made = nested_of<std::runtime_error>(numbers | ps::batch(4) | ps::workers(workers));
    CHECK(made.stage() == "generated");
    CHECK(made.at()->index == 13);
    CHECK(made.key() == "13");
    CHECK(nested_of<std::runtime_error>(numbers | ps::map([](float x) { return x + 1; }) |
                                        ps::filter([](float x) { return x > 0; }) | ps::batch(4) |
                                        ps::workers(workers))
              .stage() == "generated");
    // the error of a function that knows this library keeps its type
    auto run = (ps::generated(20, [](std::uint64_t i) { return i; }) | ps::map([](std::uint64_t i) {
                  if (i == 5) throw ps::error(ps::errc::argument, "five");
                  return i;
                }) |
                ps::batch(4) | ps::workers(workers))
                   .open();
    (void)run.next();
    const auto next = run.next();
    try {
      std::rethrow_exception(next.failure);
    } catch (const ps::nested_error&) {
      FAIL("it needs no other error around it");
    } catch (const ps::error& e) {
      CHECK(std::string(e.what()) == "penstock: five [position 0:5]");
    }
  }
}

TEST_CASE("run/user_exceptions: the stage that threw is named among others, and after substitutes") {
  const auto numbers = ps::generated(40, [](std::uint64_t i) {
    if (i == 3) throw ps::error(ps::errc::format, "bad");
    return i;
  });
  const auto plan = numbers | ps::map([](std::uint64_t i) { return std::vector<std::uint64_t>(2, i); }) |
                    ps::unbatch | ps::map([](std::uint64_t i) { return i; }) | ps::map([](std::uint64_t i) {
                      if (i == 30) throw std::runtime_error("thirty");
                      return i;
                    }) |
                    ps::bad_samples::replace(5) | ps::batch(4);
  const auto e = nested_of<std::runtime_error>(plan);
  CHECK(e.stage() == "map");
  CHECK(e.at()->index == 30);
}

TEST_CASE("run/user_exceptions: the example of nested_error") {
  const auto batches = ps::generated(20, [](std::uint64_t i) { return i; }) |
                       ps::map([](std::uint64_t i) { return i < 9 ? i : throw std::out_of_range("nine"); }) |
                       ps::batch(4);
  std::size_t seen = 0;
  std::string said, original;
  const auto use = [&](const auto& b) { seen += b.size(); };
  const auto note = [&](const char* line) { said = line; };
  const auto repair = [&](const std::out_of_range& mine) { original = mine.what(); };
  try {
    for (auto&& b : batches.epoch(0)) use(b);
  } catch (const ps::nested_error& e) {
    note(e.what());
    if (const auto* mine = e.as<std::out_of_range>()) repair(*mine);
  }
  CHECK(seen == 8);
  CHECK(original == "nine");
  CHECK_THAT(said, contains("nine [stage map, key 9, position 0:9]"));
}

TEST_CASE("run/user_exceptions: memory that cannot be had is said with its bytes") {
  const auto message = [](const auto& plan) -> std::string {
    try {
      auto run = plan.open();
      auto next = run.next();
      if (next.failure != nullptr) std::rethrow_exception(next.failure);
    } catch (const std::bad_alloc& e) {
      return e.what();
    } catch (const ps::nested_error& e) {
      CHECK(e.as<std::bad_alloc>() != nullptr);
      return e.what();
    }
    return "it was there";
  };
  struct large {
    std::uint64_t values[1 << 15];
  };
  const auto arrays = ps::generated(std::uint64_t{1} << 40, [](std::uint64_t) { return large{}; });
  CHECK_THAT(message(arrays | ps::batch(4'000'000'000u) | ps::workers(1)),
             contains("penstock: there is no memory for 1048576000000000 bytes of the slots of a batch"));
  const auto endless = ps::generated(std::uint64_t{1} << 50, [](std::uint64_t i) { return i; });
  CHECK_THAT(message(endless | ps::shuffle_buffer(std::uint64_t{1} << 50) | ps::batch(4)),
             contains("bytes of the positions that shuffle_buffer holds"));
  const auto lies = ps::generated(8, [](std::uint64_t i) {
    ps::buffer b;
    b.resize_for_overwrite(i == 5 ? std::size_t{1} << 60 : 8);
    return i;
  });
  const std::string said = message(lies | ps::batch(8) | ps::workers(2));
  CHECK_THAT(said, contains("there is no memory for 1152921504606846976 bytes of a buffer"));
  CHECK_THAT(said, contains("position 0:5"));
}

TEST_CASE("run/user_exceptions: shapes that do not stack name the file and what to write") {
  const files data;
  const auto ends = [](const auto& plan) {
    auto run = plan.open();
    std::string said;
    while (said.empty()) {
      auto next = run.next();
      if (next.failure == nullptr) {
        REQUIRE(next);
        continue;
      }
      try {
        std::rethrow_exception(next.failure);
      } catch (const ps::error& e) {
        CHECK(e.code() == ps::errc::shape);
        said = e.what();
      }
    }
    return said;
  };
  const auto bytes = ends(ps::directory(data.folder.path().string()) | ps::batch(4));
  CHECK_THAT(bytes,
             contains("write decode before batch") && contains("dog/3.txt") && contains("key dog/3.txt"));
  const auto pictures =
      ps::generated(4,
                    [](std::uint64_t i) {
                      return std::pair<std::vector<std::uint8_t>, std::uint64_t>(
                          std::vector<std::uint8_t>((2 + i % 2) * 12), 2 + i % 2);
                    }) |
      ps::map([](const auto& p) {
        return ps::tensor_view<const std::uint8_t>(p.first.data(), ps::extents(p.second, 4, 3));
      });
  CHECK_THAT(ends(pictures | ps::batch(4)), contains("write resize or random_resized_crop before batch"));
  CHECK_THAT(ends(ps::generated(4, [](std::uint64_t i) { return std::vector<int>(i + 1); }) | ps::batch(4)),
             contains("make them equal before batch"));
}

TEST_CASE("run/user_exceptions: the first batch does not wait for more than its own samples") {
  // Nothing is known of how long a sample takes: blocks in flight hold one batch each, chunks a few samples.
  for (const unsigned workers : {1u, 2u, 4u}) {
    auto made = std::make_shared<std::atomic<std::uint64_t>>(0);
    const auto slow = ps::generated(1'000'000, [made](std::uint64_t i) {
      made->fetch_add(1);
      return static_cast<float>(i);
    });
    {
      auto run = (slow | ps::shuffle(ps::seed(1)) | ps::batch(64) | ps::workers(workers)).open();
      REQUIRE(run.next());
      CHECK(made->load() <= (workers + 3) * 64);
    }
    made->store(0);
    {
      auto run =
          (slow | ps::filter([](float) { return true; }) | ps::batch(64) | ps::workers(workers)).open();
      REQUIRE(run.next());
      CHECK(made->load() <= 64 + 8 * (workers + 4));
    }
    made->store(0);
    {
      auto run = (slow | ps::workers(workers)).open();
      for ([[maybe_unused]] const float x : run) break;
      CHECK(made->load() <= 8 * (workers + 4));
    }
  }
}

}  // namespace user_exceptions_test
