// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <penstock/core/arrow_abi.hpp>

#include "support/catch.hpp"

#include <utility>

namespace abi = penstock::arrow_abi;

TEST_CASE("core/arrow_abi: a struct that is held is released once, by whoever has it last") {
  int released = 0;
  const auto made = [&] {
    abi::array one;
    one.private_data = &released;
    one.release = [](abi::array* self) {
      ++*static_cast<int*>(self->private_data);
      self->release = nullptr;
    };
    return one;
  };
  {
    abi::array from = made();
    abi::held<abi::array> first(from);
    CHECK(from.release == nullptr);
    CHECK_FALSE(first.empty());
    abi::held<abi::array> second(std::move(first));
    CHECK(first.empty());  // NOLINT: what a move leaves
    CHECK(released == 0);
    abi::array other = made();
    second = abi::held<abi::array>(other);
    CHECK(released == 1);
    CHECK(second->private_data == &released);
  }
  CHECK(released == 2);
  abi::array last = made();
  abi::array given = abi::held<abi::array>(last).release();
  CHECK(released == 2);
  given.release(&given);
  CHECK(released == 3);
  abi::held<abi::array> filled;
  CHECK(filled.empty());
  *filled.get() = made();
  CHECK_FALSE(filled.empty());
}
