// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/cpp20.hpp>

#include <type_traits>

/// What can be wrong with an expression made with `|`. Each mistake is a type with one sentence that says
/// what to write instead, and is defined next to the stage that can be misused.
namespace penstock::inline v0_1 {

struct about_expression_tag {};  ///< a mistake about where something was written
struct about_element_tag {};     ///< a mistake about the element: the compiler's message names its type
/// The bases of mistakes of both kinds.
struct about_expression {
  using penstock_mistake = about_expression_tag;
};
/// As `about_expression`.
struct about_element {
  using penstock_mistake = about_element_tag;
};

/// What a mistake is: it declares what its sentence is about, and its `explain` does not compile. Your own
/// stage can have mistakes: return them from its `diagnose`:
///
///     struct needs_a_number {
///       using penstock_mistake = about_element_tag;
///       static consteval void explain(auto reached) {
///         static_assert(never<decltype(reached)>, "halve: the element is no number; write map(f) before it");
///       }
///     };
///     struct halve_stage {
///       using penstock_part = pointwise_tag;
///       template <class Call>
///       double apply(double value, const Call&) const { return value / 2; }
///       template <class Context>
///       static consteval auto diagnose() {
///         if constexpr (std::convertible_to<typename Context::element, double>)
///           return mistakes::none{};
///         else
///           return needs_a_number{};
///       }
///     };
template <class M>
concept mistake = requires { typename M::penstock_mistake; };

/// Always false, whatever the type. The `static_assert` of a mistake tests it, so that it fails where the
/// mistake is made and not where it is defined.
template <class>
inline constexpr bool never = false;

/// Shows in a compiler's message the type of the element that arrives at the misused stage.
template <class Element>
struct arrives_here {};

/// Shows in a compiler's message the source or stage that lost a guarantee.
template <class Part>
struct lost_by {};

namespace mistakes {

/// Nothing is wrong.
struct none {};

/// What `diagnose` returns if a mistake is made unless something holds.
template <bool Holds, class Mistake>
using unless = std::conditional_t<Holds, none, Mistake>;

struct not_a_part : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: the right side of | is not a stage; write map(f), batch(n) or another stage, or "
                  "give your type `using penstock_part = pointwise_tag;`");
  }
};
struct not_a_source : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: the left side of | is not a source; wrap a container in from(...), or give your "
                  "type `using penstock_part = source_tag;`");
  }
};
struct source_with_open : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: a source is connected, and only a plan is opened; call the source's open() "
                  "connect()");
  }
};
struct source_without_element : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: this source does not say what its samples are; give it `using element = ...`, see "
        "<penstock/source/concepts.hpp>");
  }
};
struct source_without_reader : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: a source has a class `reader`, and connect() returns one; its evaluate(position, "
        "worker&, sink) gives a sample, or next(element&) if it is read forward, see "
        "<penstock/source/concepts.hpp>");
  }
};
struct source_without_names : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: a source with size() is read in any order, and also has starts(), describe(), "
                  "fingerprint() and a source_name, see <penstock/source/concepts.hpp>");
  }
};
struct no_source : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: this chain has no source; begin it with one, as in from(samples) | ... or "
                  "webdataset(path) | ...");
  }
};
struct two_sources : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: a pipeline has one source, and this is a second one; join datasets with "
                  "mix(...) or concat(...)");
  }
};
struct value_after_batch : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: this stage works on samples but comes after batch; move it before batch(n), or write "
        "map_batch(f) for a function of whole batches");
  }
};
struct stage_after_copy : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: this stage comes after pin_and_copy, where batches have left the host; move "
                  "it before batch(n)");
  }
};
struct order_on_forward : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: random access to a source that can only be read forward; use "
                  "shuffle_buffer(k), or a source with an index");
  }
};
struct order_after_filter : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: this stage needs to know how many samples there are, which is unknown after "
                  "filter or unbatch, and after batch over a forward source; move it before");
  }
};
struct order_after_cursor : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: this stage computes positions but comes after shuffle_buffer, where positions "
                  "come from a cursor; move it before");
  }
};
struct order_after_batch : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: this stage chooses or reorders samples but comes after batch, where it would "
                  "choose or reorder whole batches; write it before batch(n)");
  }
};
struct stage_after_pack : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: behind pack there are rows of several samples, and this stage works on samples; "
                  "write it before pack, and batch(n) behind it");
  }
};
struct order_after_uneven_steps : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: this stage counts batches but comes after batch_by, bucket_by or pack, where the number "
        "of batches may differ from epoch to epoch; write take, skip and repeat before it, and leave "
        "steps(n) out");
  }
};
struct wrong_argument : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: this stage's function cannot be called with what arrives here; this error names its "
        "type, in arrives_here<...>");
  }
};
struct lost_by_a_stage : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: require: the guarantee is lost by a stage of this chain, see its `loses`; "
                  "remove that stage or the require");
  }
};
struct lost_by_filter : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: require: the guarantee is lost by filter or unbatch (they lose indexed and "
                  "lockstep, and after shard also elastic); lockstep comes back with steps(n), elastic by "
                  "filtering before shard");
  }
};
struct lost_by_forward : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: require: the guarantee is lost by a source that can only be read forward; use "
                  "a source with an index");
  }
};

}  // namespace mistakes

namespace detail {

template <class... Ms>
struct first_mistake : std::type_identity<mistakes::none> {};
template <class M, class... Rest>
struct first_mistake<M, Rest...> : std::type_identity<M> {};
template <class... Rest>
struct first_mistake<mistakes::none, Rest...> : first_mistake<Rest...> {};

/// Whether `M` means that nothing is wrong.
template <class M>
inline constexpr bool is_right = false;
template <>
inline constexpr bool is_right<mistakes::none> = true;

}  // namespace detail

}  // namespace penstock::inline v0_1
