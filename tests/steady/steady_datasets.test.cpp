// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Samples of datasets in formats of their own allocate nothing in the steady state, as those of tar do not.

#include "support/arrow_text.hpp"
#include "support/catch.hpp"
#include "support/steady_test.hpp"
#include "support/temp_dir.hpp"
#include "support/tf_files.hpp"

#include <penstock/codec/arrow_value.hpp>
#include <penstock/codec/identity.hpp>
#include <penstock/codec/raw_number.hpp>
#include <penstock/codec/tf_example.hpp>
#include <penstock/codec/tf_example_bytes.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/source/arrow_ipc.hpp>
#include <penstock/source/mds.hpp>
#include <penstock/source/mds_writer.hpp>
#include <penstock/source/tfrecord.hpp>
#include <penstock/source/tfrecord_stream.hpp>
#include <penstock/source/tfrecord_writer.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/map.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ps = penstock;
using penstock_test::check_steady;

namespace steady_datasets_test {

TEST_CASE("steady/steady_datasets: columns of MDS") {
  const penstock_test::temp_dir dir;
  const std::string folder = (dir / "mds").string();
  {
    ps::mds_writer out(folder, {{"x", "bytes"}, {"n", "int"}}, {.size_limit = 2000});
    for (std::int64_t i = 0; i < 80; ++i)
      out.write({{"x", std::string_view("sixteen letters.")}, {"n", ps::mds_number(i)}});
    out.close();
  }
  check_steady(ps::mds(folder) | ps::shuffle(ps::seed(3)) |
                   ps::decode<ps::field<"n", ps::raw_number<std::int64_t>>> | ps::batch(8),
               "a column");
}

TEST_CASE("steady/steady_datasets: features of TFRecord") {
  const penstock_test::temp_dir dir;
  const std::string path = (dir / "a").string();
  {
    const float floats[] = {1, 2, 3};
    ps::tfrecord_writer out(path);
    for (int i = 0; i < 80; ++i)
      out.write(ps::tf_example_bytes({{"n", i}, {"f", std::span<const float>(floats)}, {"b", "some text"}}));
    out.close();
  }
  using example = ps::tf_example<ps::feature<"n", std::int64_t>, ps::feature<"f", std::array<float, 3>>>;
  const auto sum = [](const auto& one) {
    return ps::get<"f">(one)[2] + static_cast<float>(ps::get<"n">(one));
  };
  const auto data = ps::tfrecord(path);
  check_steady(data | ps::shuffle(ps::seed(3)) | ps::decode<example> | ps::map(sum) | ps::batch(8),
               "features");
  check_steady(data | ps::shuffle(ps::seed(3)) | ps::batch(8, ps::ragged), "records");
  using views = ps::tf_example<ps::feature<"f", std::span<const float>>,
                               ps::feature<"n", std::span<const std::int32_t>>, ps::feature<"b", ps::bytes>>;
  const auto sizes = [](const auto& one) {
    return ps::get<"f">(one).size() + ps::get<"n">(one).size() + ps::get<"b">(one).size();
  };
  check_steady(data | ps::shuffle(ps::seed(3)) | ps::decode<views> | ps::map(sizes) | ps::batch(8),
               "lists and bytes");
  check_steady(ps::tfrecord_stream(path) | ps::batch(8, ps::ragged), "forward");
}

TEST_CASE("steady/steady_datasets: columns of Arrow") {
  const penstock_test::oracle_folder folder(penstock_test::arrow_oracles);
  const std::vector files(12, folder("file.arrow"));
  check_steady(
      ps::arrow_ipc(files) | ps::shuffle(ps::seed(3)) |
          ps::decode<ps::field<"u", ps::arrow_value<std::uint8_t>>, ps::field<"v", ps::arrow_array<float>>,
                     ps::field<"i", ps::arrow_value<std::int64_t, 0>>> |
          ps::batch(8),
      "numbers and arrays");
  const auto size = [](const auto& one) {
    return ps::get<"s">(one).value_or("").size() + ps::get<"k">(one).value_or("").size();
  };
  check_steady(ps::arrow_ipc(files) | ps::shuffle(ps::seed(3)) |
                   ps::decode<ps::field<"s", ps::arrow_value<std::optional<std::string_view>>>,
                              ps::field<"k", ps::arrow_value<std::optional<std::string_view>>>> |
                   ps::map(size) | ps::batch(8),
               "texts and dictionary values");
}

}  // namespace steady_datasets_test
