// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The program of docs/tasks/webdataset.md: images and captions in tar shards.

#include <penstock/codec/image_of.hpp>
#include <penstock/codec/jpeg.hpp>
#include <penstock/codec/png.hpp>
#include <penstock/image.hpp>
#include <penstock/penstock.hpp>

#include <cstdio>
#include <exception>

namespace ps = penstock;

int main(int argc, char** argv) {
  try {
    using picture = ps::image_of<ps::jpeg, ps::png>;
    const auto loader = ps::webdataset(argc > 1 ? argv[1] : "train-{0000..0127}.tar") |
                        ps::decode<ps::field<"jpg;jpeg;png", picture>, ps::field<"txt", ps::text>> |
                        ps::map<"jpg">(ps::resize(64, 64), ps::normalize(ps::imagenet), ps::to_chw()) |
                        ps::shuffle(ps::seed(7), ps::window(16)) |
                        ps::batch(4, ps::collate<"txt">(ps::ragged));

    auto run = loader.open();
    std::size_t count = 0, characters = 0;
    for (auto&& batch : run.epoch(0)) {
      const auto pixels = get<"jpg">(batch);    // floats, (4, 3, 64, 64); the last batch may be smaller
      const auto captions = get<"txt">(batch);  // captions[i] is the text of sample i
      count += pixels.shape()[0];
      characters += captions.values().size();
    }
    std::printf("%zu images, captions of %zu characters\n", count, characters);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
