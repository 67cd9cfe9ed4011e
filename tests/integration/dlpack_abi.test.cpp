// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <penstock/integration/dlpack_abi.hpp>

#include "support/catch.hpp"

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>

namespace dl = penstock::dlpack;

TEST_CASE("integration/dlpack_abi: types as DLPack calls them") {
  CHECK(dl::data_type_of<float> == dl::data_type{dl::type_code::floating, 32});
  CHECK(dl::data_type_of<double> == dl::data_type{dl::type_code::floating, 64});
  CHECK(dl::data_type_of<penstock::half> == dl::data_type{dl::type_code::floating, 16});
  CHECK(dl::data_type_of<penstock::bfloat16> == dl::data_type{dl::type_code::bfloat, 16});
  CHECK(dl::data_type_of<std::int8_t> == dl::data_type{dl::type_code::signed_integer, 8});
  CHECK(dl::data_type_of<std::int64_t> == dl::data_type{dl::type_code::signed_integer, 64});
  CHECK(dl::data_type_of<std::uint16_t> == dl::data_type{dl::type_code::unsigned_integer, 16});
  CHECK(dl::data_type_of<std::byte> == dl::data_type{dl::type_code::unsigned_integer, 8});
  CHECK(dl::data_type_of<char> == dl::data_type{dl::type_code::unsigned_integer, 8});
  CHECK(dl::data_type_of<bool> == dl::data_type{dl::type_code::boolean, 8});
  CHECK(dl::data_type_of<std::complex<float>> == dl::data_type{dl::type_code::complex, 64});
  static_assert(!dl::exchanged_value<std::complex<long double>>);  // 256 bits are too many for a DLDataType
  CHECK(dl::data_type_of<std::complex<double>> == dl::data_type{dl::type_code::complex, 128});
}

TEST_CASE("integration/dlpack_abi: structs and pointers are not exchanged") {
  struct pair {
    int a, b;
  };
  STATIC_REQUIRE(!dl::exchanged_value<pair>);
  STATIC_REQUIRE(!dl::exchanged_value<int*>);
  STATIC_REQUIRE(!dl::exchanged_value<std::string>);
  STATIC_REQUIRE(dl::exchanged_value<float>);
}

TEST_CASE("integration/dlpack_abi: numbers of the standard") {
  CHECK(static_cast<int>(dl::device_type::cpu) == 1);
  CHECK(static_cast<int>(dl::device_type::cuda) == 2);
  CHECK(static_cast<int>(dl::device_type::cuda_host) == 3);
  CHECK(static_cast<int>(dl::device_type::rocm) == 10);
  CHECK(static_cast<int>(dl::device_type::rocm_host) == 11);
  CHECK(static_cast<int>(dl::device_type::cuda_managed) == 13);
  CHECK(dl::version().major == 1);
}
