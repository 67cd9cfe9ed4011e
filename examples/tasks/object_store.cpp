// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The program of docs/tasks/object_store.md: shards in S3, or in a store that speaks its language.

#include <penstock/penstock.hpp>
#include <penstock/storage/s3.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace ps = penstock;

int main(int argc, char** argv) {
  try {
    // A pattern with braces names objects without a list: ps::s3("bucket/train-{0000..0127}.tar").
    std::vector<std::string> shards = ps::s3::list(argc > 1 ? argv[1] : "s3://bucket/train-");
    std::erase_if(shards, [](const std::string& name) { return !name.ends_with(".tar"); });

    const auto loader = ps::webdataset(ps::s3(shards)) | ps::decode<ps::field<"cls", ps::integer>> |
                        ps::shuffle(ps::seed(7), ps::window(4)) | ps::batch(16);

    auto run = loader.open();
    std::size_t count = 0;
    for (auto&& batch : run.epoch(0)) count += get<"cls">(batch).size();
    std::printf("%zu shards, %zu samples\n", shards.size(), count);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
