// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/storage/object_check.hpp>

#include <penstock/core/bytes.hpp>

#include "support/catch.hpp"

#include <string>
#include <string_view>

namespace ps = penstock;

namespace object_check_test {

struct noting {
  struct running {
    std::string* notes;
    std::string name;
    int* alive;
    running(std::string* all, std::string_view called, int* count) : notes(all), name(called), alive(count) {
      ++*alive;
    }
    running(running&& other) noexcept : notes(other.notes), name(std::move(other.name)), alive(other.alive) {
      ++*alive;
    }
    running& operator=(running&&) = default;
    ~running() { --*alive; }
    void add(ps::bytes_view bytes) const { *notes += name + ':' + std::to_string(bytes.size()) + ' '; }
    void finish() const { *notes += name + " ends "; }
  };
  std::string* notes;
  int* alive;
  [[nodiscard]] running begin(std::string_view name) const { return {notes, name, alive}; }
};
struct without_finish {
  struct running {
    void add(ps::bytes_view) const {}
  };
  [[nodiscard]] running begin(std::string_view) const { return {}; }
};
struct changing {
  noting::running begin(std::string_view) { return {nullptr, "", nullptr}; }
};

static_assert(ps::object_check<noting>);
static_assert(!ps::object_check<without_finish> && !ps::object_check<changing> && !ps::object_check<int>);

TEST_CASE("storage/object_check: checks whose type is erased are those that were begun") {
  std::string notes;
  int alive = 0;
  const noting all{&notes, &alive};
  const ps::detail::check_view view(all);
  CHECK(bool(view));
  {
    ps::detail::check_view::running one(view, "one"), two(view, "two");
    CHECK(alive == 2);
    one.add(ps::bytes_of("four"));
    two.add({});
    one.finish();
  }
  CHECK(alive == 0);
  CHECK(notes == "one:4 two:0 one ends ");
}

TEST_CASE("storage/object_check: without a check all bytes are accepted") {
  const ps::detail::check_view none;
  CHECK_FALSE(bool(none));
  ps::detail::check_view::running one(none, "one");
  one.add(ps::bytes_of("four"));
  CHECK_NOTHROW(one.finish());
}

}  // namespace object_check_test
