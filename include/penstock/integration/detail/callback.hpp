// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace penstock::inline v0_1::detail {

/// A function that is called with `Args` and returns nothing; copies share it.
template <class... Args>
class callback {
 public:
  callback() = default;
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, callback> && std::is_invocable_v<F&, Args...>)
  callback(F f)  // NOLINT: as that of the standard library
      : kept_(std::make_shared<F>(std::move(f))),
        call_([](void* it, Args... args) { (*static_cast<F*>(it))(std::forward<Args>(args)...); }) {}

  void operator()(Args... args) const { call_(kept_.get(), std::forward<Args>(args)...); }

 private:
  std::shared_ptr<void> kept_;
  void (*call_)(void*, Args...) = nullptr;
};

}  // namespace penstock::inline v0_1::detail
