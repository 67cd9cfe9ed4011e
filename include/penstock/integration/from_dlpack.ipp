// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/integration/from_dlpack.hpp>

#include <limits>

namespace penstock::inline v0_1::detail {

[[nodiscard]] PENSTOCK_INLINE std::string name_of_type(dlpack::data_type type) {
  using code = dlpack::type_code;
  const std::string_view known = type.code == code::signed_integer     ? "int"
                                 : type.code == code::unsigned_integer ? "uint"
                                 : type.code == code::floating         ? "float"
                                 : type.code == code::bfloat           ? "bfloat"
                                 : type.code == code::complex          ? "complex"
                                 : type.code == code::boolean          ? "bool"
                                                                       : "";
  std::string name = known.empty() ? text({"type code ", static_cast<unsigned>(type.code), " of ",
                                           static_cast<unsigned>(type.bits), " bits"})
                                   : text({known, static_cast<unsigned>(type.bits)});
  if (type.lanes != 1) append(name, {" in vectors of ", static_cast<unsigned>(type.lanes)});
  return name;
}

[[noreturn]] PENSTOCK_INLINE void refuse_tensor(std::initializer_list<piece> why) {
  throw error(errc::argument, text({"from_dlpack: ", text(why)}));
}

// Host memory that this process can read at once.
[[nodiscard]] PENSTOCK_INLINE bool host_reads(dlpack::device_type type) noexcept {
  return type == dlpack::device_type::cpu || type == dlpack::device_type::cuda_host ||
         type == dlpack::device_type::rocm_host || type == dlpack::device_type::cuda_managed;
}

PENSTOCK_INLINE imported_tensor import_tensor(const dlpack::managed_tensor_versioned* given,
                                              dlpack::data_type wanted, std::size_t alignment) {
  if (given == nullptr)
    refuse_tensor(
        {"there is no tensor; one that was given away, or a capsule that was used, cannot be used again"});
  if (given->version.major != dlpack::version().major)
    refuse_tensor({"the tensor is of version ", given->version.major,
                   " of DLPack, and this library knows version ", dlpack::version().major,
                   "; ask its producer for that (max_version)"});
  const dlpack::tensor& t = given->dl_tensor;
  if (!host_reads(t.device.type))
    refuse_tensor({"the tensor is in memory of a device (type ", static_cast<std::int32_t>(t.device.type),
                   ", number ", t.device.id, "), which a source cannot read; copy it to the host first"});
  if (t.dtype != wanted)
    refuse_tensor({"the tensor has values of type ", name_of_type(t.dtype), ", and ", name_of_type(wanted),
                   " was asked for; write from_dlpack with its type, or convert it"});
  if (t.ndim < 0 || static_cast<std::size_t>(t.ndim) > extents::max_rank ||
      (t.ndim > 0 && t.shape == nullptr))
    refuse_tensor(
        {"the tensor has ", t.ndim, " dimensions; up to ", extents::max_rank, " are possible, reshape it"});
  imported_tensor found;
  std::uint64_t elements = 1, bytes = wanted.bits / 8u;
  bool any = true;
  for (std::int32_t i = 0; i < t.ndim; ++i) any = any && t.shape[i] != 0;
  for (std::int32_t i = 0; i < t.ndim; ++i) {
    if (t.shape[i] < 0) refuse_tensor({"the tensor's dimension ", i, " has a length of ", t.shape[i]});
    const auto length = static_cast<std::uint64_t>(t.shape[i]);
    found.shape.push_back(length);
    if (!any) continue;
    if (elements > std::numeric_limits<std::uint64_t>::max() / 2 / bytes / length)
      refuse_tensor({"the tensor's shape is that of more values than memory can hold"});
    elements *= length;
  }
  found.strides = dense_strides(found.shape);
  if (t.strides != nullptr)
    for (std::int32_t i = 0; i < t.ndim; ++i) found.strides[static_cast<std::size_t>(i)] = t.strides[i];
  if (!any) return found;
  if (t.data == nullptr) refuse_tensor({"the tensor has values and no memory"});
  found.data = static_cast<const std::byte*>(t.data) + t.byte_offset;
  if (reinterpret_cast<std::uintptr_t>(found.data) % alignment != 0)
    refuse_tensor({"the tensor's memory is not aligned to the ", alignment, " bytes of its values; copy it"});
  return found;
}

PENSTOCK_INLINE dlpack_tensor adopt_legacy(dlpack::managed_tensor* owned) {
  if (owned == nullptr) return {};
  struct give_back {
    void operator()(dlpack::managed_tensor* t) const noexcept {
      if (t->deleter != nullptr) t->deleter(t);
    }
  };
  std::unique_ptr<dlpack::managed_tensor, give_back> kept(owned);
  auto made = std::make_unique<dlpack::managed_tensor_versioned>();
  made->dl_tensor = owned->dl_tensor;
  made->manager_ctx = kept.release();
  made->deleter = [](dlpack::managed_tensor_versioned* self) {
    give_back()(static_cast<dlpack::managed_tensor*>(self->manager_ctx));
    delete self;
  };
  return dlpack_tensor(made.release());
}

}  // namespace penstock::inline v0_1::detail
