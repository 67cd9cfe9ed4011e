// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<libdeflate.h>)
#error "penstock/codec/layouts/inflater.hpp needs libdeflate: link penstock::gzip"
#endif

#include <penstock/base/owned.hpp>

#include <libdeflate.h>

#include <memory>
#include <new>

namespace penstock::inline v0_1::detail {

/// libdeflate's decompressor, created on first use.
class inflater {
 public:
  [[nodiscard]] libdeflate_decompressor* get() {
    if (!made_) made_.reset(libdeflate_alloc_decompressor());
    if (!made_) throw std::bad_alloc();
    return made_.get();
  }

 private:
  std::unique_ptr<libdeflate_decompressor, freed_by<libdeflate_free_decompressor>> made_;
};

}  // namespace penstock::inline v0_1::detail
