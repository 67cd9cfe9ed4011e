// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/call.hpp>
#include <penstock/sequence/token_sequence.hpp>

#include <concepts>
#include <cstring>
#include <span>
#include <vector>

namespace penstock::inline v0_1 {

/// What a function given to `join_turns` writes to: the tokens of one conversation, and for each of them
/// whether a model is trained on it.
template <token_value T>
class token_turns {
 public:
  void add(T token, bool trained = false) {
    tokens_.push_back(token);
    trained_.push_back(trained ? 1 : 0);
  }
  void add(std::span<const T> tokens, bool trained = false) {
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    mark(trained);
  }
  /// For tokenizers that append to a vector: calls `write(tokens)`, which may only append.
  template <std::invocable<std::vector<T>&> Write>
  void append(Write&& write, bool trained = false) {
    write(tokens_);
    mark(trained);
  }

  [[nodiscard]] std::span<const T> tokens() const noexcept { return tokens_; }
  [[nodiscard]] std::span<const std::uint8_t> loss_mask() const noexcept { return trained_; }
  void clear() noexcept {
    tokens_.clear();
    trained_.clear();
  }

 private:
  void mark(bool trained) { trained_.resize(tokens_.size(), trained ? 1 : 0); }

  std::vector<T> tokens_;
  std::vector<std::uint8_t> trained_;
};

/// What `join_turns` makes: a function for `map`.
template <token_value T, class F>
class join_turns_operation {
 public:
  using accepts_call = void;
  using makes_fields = void;
  using scratch = token_turns<T>;

  explicit constexpr join_turns_operation(F function) : function_(std::move(function)) {}

  template <class V>
    requires std::invocable<const F&, finished<V>, token_turns<T>&>
  [[nodiscard]] auto operator()(V&& sample, const call<scratch>& c) const {
    c.scratch.clear();
    function_(penstock::finish(std::forward<V>(sample)), c.scratch);
    return record<field<"tokens", std::span<const T>>, field<"loss_mask", std::span<const std::uint8_t>>>(
        c.scratch.tokens(), c.scratch.loss_mask());
  }

 private:
  [[no_unique_address]] F function_;
};

/// Makes one document of a conversation: `f(sample, turns)` adds its tokens piece by piece, as your chat
/// template has them, and says of each piece whether a model is trained on it.
///
/// In: any sample; `f` is callable when const, by several workers at once. Out: a record of "tokens", of type
/// `T`, and "loss_mask", of `std::uint8_t`: 1 at the tokens that are trained on. Both are views of memory of
/// the worker. Other fields of the sample do not go on. Pointwise; keeps all five guarantees. No allocation
/// once the memory has grown. Cost: the call, and the copies to the slots. Throws what `f` throws.
///
///     struct turn { bool assistant; std::vector<std::int32_t> tokens; };
///     auto chat = map(join_turns<std::int32_t>([](const std::vector<turn>& all, token_turns<std::int32_t>& into) {
///       for (const turn& each : all) {
///         into.add(each.assistant ? 3 : 4);                    // <|assistant|> or <|user|>
///         into.add(each.tokens, each.assistant);
///         into.add(2, each.assistant);                         // <|end|>
///       }
///     }));
template <token_value T, class F>
[[nodiscard]] constexpr auto join_turns(F function) {
  return join_turns_operation<T, F>(std::move(function));
}

}  // namespace penstock::inline v0_1
