// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The program of docs/tasks/images_from_folders.md: images in one folder per class.

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
    const auto images = ps::directory(argc > 1 ? argv[1] : "train");
    for (const auto& name : images.classes()) std::printf("class %s\n", name.c_str());

    const auto loader = images | ps::shuffle(ps::seed(7)) |
                        ps::decode<ps::field<"bytes", ps::image_of<ps::jpeg, ps::png>>> |
                        ps::map<"bytes">(ps::random_resized_crop(64), ps::horizontal_flip(),
                                         ps::normalize(ps::imagenet), ps::to_chw()) |
                        ps::batch(4, ps::tail::drop);

    auto run = loader.open();
    for (auto epoch : run.epochs(2)) {
      std::size_t count = 0;
      for (auto&& batch : epoch) {
        const auto pixels = get<"bytes">(batch);  // floats, (4, 3, 64, 64)
        const auto labels = get<"label">(batch);  // 4 numbers of classes
        count += labels.size();
        if (pixels.shape() != ps::extents(4, 3, 64, 64)) return 1;
      }
      std::printf("epoch %d: %zu images\n", static_cast<int>(epoch.number()), count);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
