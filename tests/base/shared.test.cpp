// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/base/shared.hpp>

#include "support/catch.hpp"

#include <memory>
#include <utility>

namespace ps = penstock;

namespace {

struct counted {
  explicit counted(int* alive) : alive_(alive) { ++*alive_; }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
  ~counted() { --*alive_; }
  int value = 7;

 private:
  int* alive_;
};
struct other_base {
  int unused = 0;
};
struct derived : other_base, counted {
  using counted::counted;
};

}  // namespace

TEST_CASE("shared: the last owner destroys the object") {
  int alive = 0;
  {
    ps::shared<const counted> one(new counted(&alive));
    ps::shared<const counted> two = one;
    CHECK(one.get() == two.get());
    one = nullptr;
    CHECK(alive == 1);
    CHECK(two->value == 7);
    CHECK(one == nullptr);
    CHECK_FALSE(one);
  }
  CHECK(alive == 0);
}

TEST_CASE("shared: a moved-from pointer is null; self-assignment changes nothing") {
  int alive = 0;
  ps::shared<counted> one(new counted(&alive));
  ps::shared<counted> two = std::move(one);
  CHECK(one == nullptr);  // NOLINT: that is the question
  auto& same = two;
  two = same;
  CHECK(alive == 1);
  two.reset(new counted(&alive));
  CHECK(alive == 1);
  two = {};
  CHECK(alive == 0);
}

TEST_CASE("shared: it converts to and from std::shared_ptr and keeps the object") {
  int alive = 0;
  {
    auto standard = std::make_shared<derived>(&alive);
    const ps::shared<counted> base = standard;  // a base that is not at the object's address
    CHECK(static_cast<counted*>(standard.get()) == base.get());
    const ps::shared<const counted> constant = base;
    const std::shared_ptr<const counted> back = constant;
    const ps::shared<const void> nameless = constant;
    standard.reset();
    CHECK(back->value == 7);
    CHECK(nameless.get() == back.get());
    CHECK(alive == 1);
  }
  CHECK(alive == 0);
}

TEST_CASE("shared: an object is destroyed as its own type, also through a base") {
  int alive = 0;
  {
    const ps::shared<counted> base(new derived(&alive));
    CHECK(base->value == 7);
  }
  CHECK(alive == 0);
}

TEST_CASE("shared: a std::shared_ptr that owns an object but points to null becomes null") {
  int alive = 0;
  auto kept = std::make_shared<counted>(&alive);
  const ps::shared<counted> nothing = std::shared_ptr<counted>(kept, nullptr);
  kept.reset();
  CHECK(nothing == nullptr);
  CHECK(alive == 0);
}

TEST_CASE("shared: made from a null pointer it is null, and leaks nothing") {
  ps::shared<counted> nothing(static_cast<counted*>(nullptr));
  CHECK(nothing == nullptr);
  nothing.reset(static_cast<counted*>(nullptr));
  CHECK(nothing == nullptr);
}
