// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/integration/from_dlpack.hpp>

#include <penstock/core/error.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/workers.hpp>

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/foreign_tensor.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ps = penstock;
using namespace penstock_test;

namespace {

/// What from_dlpack says of a tensor, which it deletes.
template <class T = float, class Given>
std::string refusal_of(foreign_tensor<Given>& given) {
  try {
    (void)ps::from_dlpack<T>(given.versioned());
  } catch (const ps::error& e) {
    CHECK(e.code() == ps::errc::argument);
    CHECK(given.deleted == 1);
    const std::string_view line = e.what(), before = "penstock: from_dlpack: ";
    REQUIRE(line.starts_with(before));
    return std::string(line.substr(before.size()));
  }
  return "it was taken";
}

struct some_other_header {  // as a copy of dlpack.h has it
  struct {
    std::uint32_t major, minor;
  } version;
  void* manager_ctx;
  void (*deleter)(some_other_header*);
  std::uint64_t flags;
  ps::dlpack::tensor dl_tensor;
};

}  // namespace

TEST_CASE("integration/from_dlpack: rows of an array, which lives as long as anything that reads it") {
  foreign_tensor<float> given({4, 3});
  {
    const auto array = ps::from_dlpack<float>(given.versioned());
    CHECK(array.size() == 4);
    CHECK(array.shape() == ps::extents(4, 3));
    CHECK(array[2](1) == 7);
    CHECK(array.view()(3, 2) == 11);
    float sum = 0;
    for (const auto row : array) sum += row(0);
    CHECK(sum == 0 + 3 + 6 + 9);
    auto plan = ps::from(array) | ps::batch(2) | ps::workers(1);
    auto run = plan.open();
    CHECK(given.deleted == 0);
    auto batch = run.next();
    REQUIRE(batch);
    CHECK(batch->values().shape() == ps::extents(2, 3));
    CHECK(batch->values()(1, 2) == 5);
  }
  CHECK(given.deleted == 1);
}

TEST_CASE("integration/from_dlpack: a dataset, shuffled, over workers") {
  foreign_tensor<std::int64_t> given({100});
  const auto plan =
      ps::from(ps::from_dlpack<std::int64_t>(given.versioned())) | ps::shuffle(ps::seed(3)) | ps::batch(10);
  const auto expected = values_of(ps::from(given.values) | ps::shuffle(ps::seed(3)) | ps::batch(10));
  for (const unsigned workers : {0u, 1u, 3u}) CHECK(values_of(plan, workers) == expected);
}

TEST_CASE("integration/from_dlpack: the example") {
  foreign_tensor<float> given({1000, 2});
  auto* const tensor = given.versioned();
  auto data = ps::from(ps::from_dlpack<float>(tensor)) | ps::shuffle(ps::seed(7)) | ps::batch(256);
  CHECK(values_of(data).size() == 2000);
}

TEST_CASE("integration/from_dlpack: any strides give the right values") {
  foreign_tensor<std::int32_t> given({6, 4});
  given.shape = {4, 6};  // transposed
  given.stride({1, 4});
  const auto transposed = ps::from_dlpack<std::int32_t>(given.versioned());
  CHECK(values_of(ps::from(transposed) | ps::batch(4)) ==
        std::vector<std::int32_t>{0, 4, 8,  12, 16, 20, 1, 5, 9,  13, 17, 21,
                                  2, 6, 10, 14, 18, 22, 3, 7, 11, 15, 19, 23});
  foreign_tensor<std::int32_t> backwards({6});
  backwards.stride({-1}, 5);
  CHECK(values_of(ps::from(ps::from_dlpack<std::int32_t>(backwards.versioned())) | ps::batch(6)) ==
        std::vector<std::int32_t>{5, 4, 3, 2, 1, 0});
  foreign_tensor<std::int32_t> repeated({1});
  repeated.shape = {3};
  repeated.stride({0});
  CHECK(values_of(ps::from(ps::from_dlpack<std::int32_t>(repeated.versioned())) | ps::batch(3)) ==
        std::vector<std::int32_t>{0, 0, 0});
}

TEST_CASE("integration/from_dlpack: the form of before version 1.0, and the structs of another header") {
  foreign_tensor<float> given({2, 2});
  {
    const auto array = ps::from_dlpack<float>(given.legacy());
    CHECK(array[1](1) == 3);
    CHECK(given.deleted == 0);
  }
  CHECK(given.deleted == 1);
  auto* const same = reinterpret_cast<some_other_header*>(given.versioned());
  CHECK(ps::from_dlpack<float>(same)[1](0) == 2);
  CHECK(given.deleted == 2);
  given.versioned()->dl_tensor.device.type = ps::dlpack::device_type::cuda_host;
  CHECK(ps::from_dlpack<float>(ps::dlpack_tensor(given.versioned())).size() == 2);
}

TEST_CASE("integration/from_dlpack: arrays without values") {
  foreign_tensor<float> none({0, 5});
  none.versioned()->dl_tensor.data = nullptr;
  const auto array = ps::from_dlpack<float>(none.versioned());
  CHECK(array.size() == 0);
  CHECK(array.begin() == array.end());
  CHECK(values_of(ps::from(array) | ps::batch(2)).empty());
  foreign_tensor<float> scalar({});
  CHECK(ps::from_dlpack<float>(scalar.versioned()).size() == 0);
  foreign_tensor<float> flat({3, 0});
  CHECK(ps::from_dlpack<float>(flat.versioned()).size() == 3);
  CHECK(ps::dlpack_array<float>().size() == 0);
}

TEST_CASE("integration/from_dlpack: what is refused, with what to do; and deleted all the same") {
  using namespace std::string_literals;
  foreign_tensor<double> doubles({2});
  CHECK(refusal_of(doubles) ==
        "the tensor has values of type float64, and float32 was asked for; write from_dlpack with "
        "its type, or convert it");
  foreign_tensor<float> vectors({2});
  vectors.versioned()->dl_tensor.dtype.lanes = 4;
  CHECK(refusal_of(vectors) ==
        "the tensor has values of type float32 in vectors of 4, and float32 was asked for; write "
        "from_dlpack with its type, or convert it");
  foreign_tensor<float> small({2});
  small.versioned()->dl_tensor.dtype = {static_cast<ps::dlpack::type_code>(12), 8, 1};
  CHECK(refusal_of(small) ==
        "the tensor has values of type type code 12 of 8 bits, and float32 was asked for; write "
        "from_dlpack with its type, or convert it");
  foreign_tensor<float> away({2});
  away.versioned()->dl_tensor.device = {ps::dlpack::device_type::cuda, 3};
  CHECK(refusal_of(away) ==
        "the tensor is in memory of a device (type 2, number 3), which a source cannot read; "
        "copy it "
        "to the host first");
  foreign_tensor<float> later({2});
  later.versioned()->version.major = 2;
  CHECK(refusal_of(later) ==
        "the tensor is of version 2 of DLPack, and this library knows version 1; ask its producer "
        "for that (max_version)");
  foreign_tensor<float> deep({1, 1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(refusal_of(deep) == "the tensor has 9 dimensions; up to 8 are possible, reshape it");
  foreign_tensor<float> negative({2});
  negative.shape[0] = -2;
  CHECK(refusal_of(negative) == "the tensor's dimension 0 has a length of -2");
  foreign_tensor<float> huge({2, 2});
  huge.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  huge.versioned()->dl_tensor.shape = huge.shape.data();
  CHECK(refusal_of(huge) == "the tensor's shape is that of more values than memory can hold");
  foreign_tensor<float> nowhere({2});
  nowhere.versioned()->dl_tensor.data = nullptr;
  CHECK(refusal_of(nowhere) == "the tensor has values and no memory");
  foreign_tensor<float> odd({2});
  odd.versioned()->dl_tensor.byte_offset = 1;
  CHECK(refusal_of(odd) == "the tensor's memory is not aligned to the 4 bytes of its values; copy it");
  ps::dlpack_tensor used;
  CHECK_THROWS_WITH(ps::from_dlpack<float>(std::move(used)),
                    "penstock: from_dlpack: there is no tensor; one that was given away, or a capsule that "
                    "was used, cannot "
                    "be used again");
  CHECK_THROWS_AS(ps::from_dlpack<float>(static_cast<ps::dlpack::managed_tensor*>(nullptr)), ps::error);
}
