// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/integration/dlpack_abi.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace penstock_test {

/// A tensor as another library produces it, with the values 0, 1, 2, ..., that counts how often it was
/// deleted.
template <class T>
struct foreign_tensor {
  std::vector<T> values;
  std::vector<std::int64_t> shape, strides;
  int deleted = 0;

  explicit foreign_tensor(std::vector<std::int64_t> lengths) : shape(std::move(lengths)) {
    std::int64_t count = 1;
    for (const std::int64_t length : shape) count *= length;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<T>(i));
    fill(tensor_.dl_tensor);
    tensor_.manager_ctx = this;
    tensor_.deleter = [](penstock::dlpack::managed_tensor_versioned* self) {
      ++static_cast<foreign_tensor*>(self->manager_ctx)->deleted;
    };
    fill(legacy_.dl_tensor);
    legacy_.manager_ctx = this;
    legacy_.deleter = [](penstock::dlpack::managed_tensor* self) {
      ++static_cast<foreign_tensor*>(self->manager_ctx)->deleted;
    };
  }
  foreign_tensor(const foreign_tensor&) = delete;
  foreign_tensor& operator=(const foreign_tensor&) = delete;

  /// Gives the tensor these strides, in elements, and begins at this element.
  void stride(std::vector<std::int64_t> with, std::uint64_t first = 0) {
    strides = std::move(with);
    tensor_.dl_tensor.strides = strides.data();
    tensor_.dl_tensor.byte_offset = first * sizeof(T);
  }

  [[nodiscard]] penstock::dlpack::managed_tensor_versioned* versioned() { return &tensor_; }
  [[nodiscard]] penstock::dlpack::managed_tensor* legacy() { return &legacy_; }

 private:
  void fill(penstock::dlpack::tensor& t) {
    t.data = values.data();
    t.ndim = static_cast<std::int32_t>(shape.size());
    t.dtype = penstock::dlpack::data_type_of<T>;
    t.shape = shape.data();
  }

  penstock::dlpack::managed_tensor_versioned tensor_;
  penstock::dlpack::managed_tensor legacy_;
};

}  // namespace penstock_test
