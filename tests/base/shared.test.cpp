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

TEST_CASE("shared: the last one destroys what new made") {
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

TEST_CASE("shared: what is moved from holds nothing; what is assigned to itself stays") {
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

TEST_CASE("shared: it and std::shared_ptr turn into each other and keep the same object") {
  int alive = 0;
  {
    auto standard = std::make_shared<derived>(&alive);
    const ps::shared<counted> base = standard;  // a base that does not lie where the object begins
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

TEST_CASE("shared: an object is destroyed as what it was made, also through a base") {
  int alive = 0;
  {
    const ps::shared<counted> base(new derived(&alive));
    CHECK(base->value == 7);
  }
  CHECK(alive == 0);
}

TEST_CASE("shared: a std::shared_ptr that keeps something and shows nothing is nothing") {
  int alive = 0;
  auto kept = std::make_shared<counted>(&alive);
  const ps::shared<counted> nothing = std::shared_ptr<counted>(kept, nullptr);
  kept.reset();
  CHECK(nothing == nullptr);
  CHECK(alive == 0);
}

TEST_CASE("shared: made of a null pointer it is nothing, and leaks nothing") {
  ps::shared<counted> nothing(static_cast<counted*>(nullptr));
  CHECK(nothing == nullptr);
  nothing.reset(static_cast<counted*>(nullptr));
  CHECK(nothing == nullptr);
}
