// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/integration/dlpack_tensor.hpp>

#include <penstock/core/error.hpp>

#include "support/catch.hpp"
#include "support/foreign_tensor.hpp"

#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;
using Catch::Matchers::Message;

TEST_CASE("integration/dlpack_tensor: its deleter is called once, by the last owner") {
  foreign_tensor<float> given({2, 3});
  {
    ps::dlpack_tensor one(given.versioned());
    CHECK(one.shape() == ps::extents(2, 3));
    CHECK(one->ndim == 2);
    CHECK((*one).data == given.values.data());
    ps::dlpack_tensor two = std::move(one);
    CHECK_FALSE(one);
    CHECK(two);
    auto& same = two;
    two = std::move(same);
    ps::dlpack_tensor three;
    three = std::move(two);
    CHECK(three.get() != nullptr);
    CHECK(given.deleted == 0);
  }
  CHECK(given.deleted == 1);
  { const ps::dlpack_tensor none; }
  CHECK(given.deleted == 1);
}

TEST_CASE("integration/dlpack_tensor: released, it belongs to the caller") {
  foreign_tensor<float> given({2});
  ps::dlpack_tensor one(given.versioned());
  auto* const released = one.release();
  CHECK_FALSE(one);
  CHECK(one.release() == nullptr);
  one = ps::dlpack_tensor();
  CHECK(given.deleted == 0);
  released->deleter(released);
  CHECK(given.deleted == 1);
}

TEST_CASE("integration/dlpack_tensor: the form of before version 1.0") {
  foreign_tensor<float> given({2, 3});
  ps::dlpack_tensor one(given.versioned());
  auto* const legacy = one.release_legacy();
  REQUIRE(legacy != nullptr);
  CHECK_FALSE(one);
  CHECK(legacy->dl_tensor.data == given.values.data());
  CHECK(legacy->dl_tensor.shape[1] == 3);
  CHECK(given.deleted == 0);
  legacy->deleter(legacy);
  CHECK(given.deleted == 1);
  CHECK(one.release_legacy() == nullptr);
}

TEST_CASE("integration/dlpack_tensor: a read-only tensor has no such form, and is kept") {
  foreign_tensor<float> given({2});
  given.versioned()->flags = ps::dlpack::read_only;
  ps::dlpack_tensor one(given.versioned());
  CHECK_THROWS_MATCHES(
      one.release_legacy(), ps::error,
      Message("penstock: this tensor is read-only, which DLPack can say since version 1.0 only; give its "
              "consumer release(), or copy it"));
  CHECK(one);
  CHECK(given.deleted == 0);
}

TEST_CASE("integration/dlpack_tensor: a producer without a deleter") {
  foreign_tensor<float> given({2});
  given.versioned()->deleter = nullptr;
  { const ps::dlpack_tensor one(given.versioned()); }
  CHECK(given.deleted == 0);
}
