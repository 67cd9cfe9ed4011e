// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace penstock::inline v0_1 {

/// What can be wrong with an expression made with `|`. Each has one sentence that says what to write instead.
enum class mistake {
  none,
  not_a_part,
  not_a_source,
  no_source,
  two_sources,
  two_batches,
  two_shards,
  shard_after_batch,
  batch_after_copy,
  stage_after_copy,
  value_after_batch,
  copy_without_batch,
  steps_without_batch,
  cursor_after_batch,
  no_such_field,
  field_twice,
  fields_need_names,
  decode_nothing,
  codec_wants_bytes,
  decode_which_field,
  not_a_codec,
  wrong_argument,
  mutable_function,
  returns_nothing,
  predicate_not_bool,
  discovered_without_collate,
  open_sample_in_batch,
  not_batchable,
  order_on_forward,
  order_after_decider,
  order_after_cursor,
  cursor_after_decider,
  enumerate_after_decider,
  not_expandable,
  lost_by_a_stage,
  lost_by_shuffle_buffer,
  lost_by_decider,
  lost_by_forward,
  require_nothing,
  two_bad_samples,
  replace_on_forward,
  joins_no_source,
  joins_forward,
  joins_sharded,
  joins_batched,
  joins_cursor,
  joins_decider,
  joins_annotation,
  joins_bad_samples,
  joins_nothing,
  mix_without_weights,
  mix_list_and_more,
  mix_option_twice,
  elements_differ,
  zip_needs_names,
  zip_same_field,
  zip_name_count,
};

/// Names in a compiler's message the type of the element that reaches the wrong stage.
template <class Element>
struct reached_by {};

/// Fails to compile with the sentence of `M`, and with nothing else. `Reached` is there to be printed.
template <mistake M, class Reached = void>
consteval void explain() {
  static_assert(M != mistake::not_a_part,
                "penstock: the right side of | is not a stage; write map(f), batch(n) or another stage, or "
                "give your type "
                "`using penstock_part = pointwise_tag;`");
  static_assert(
      M != mistake::not_a_source,
      "penstock: the left side of | is not a source; wrap a container in from(...), or give your type "
      "`using penstock_part = source_tag;`");
  static_assert(M != mistake::no_source,
                "penstock: this chain has no source; begin it with one, as in from(samples) | ... or "
                "webdataset(path) | ...");
  static_assert(M != mistake::two_sources,
                "penstock: a pipeline has one source, and this is a second one; join datasets with mix(...) "
                "or concat(...)");
  static_assert(
      M != mistake::two_batches,
      "penstock: batch after batch; a pipeline cuts batches once, write one batch(n) with the size you want");
  static_assert(
      M != mistake::two_shards,
      "penstock: shard after shard; positions are global and the world is recorded once, remove one of them");
  static_assert(
      M != mistake::shard_after_batch,
      "penstock: shard after batch; batches are cut for this rank, write shard(rank, world) before batch(n)");
  static_assert(M != mistake::batch_after_copy,
                "penstock: batch after pin_and_copy; samples are collated before they are copied, write "
                "batch(n) | pin_and_copy");
  static_assert(M != mistake::stage_after_copy,
                "penstock: this stage stands after pin_and_copy, where batches have left the host; move it "
                "before batch(n)");
  static_assert(M != mistake::value_after_batch,
                "penstock: this stage works on samples and stands after batch; move it before batch(n)");
  static_assert(M != mistake::copy_without_batch,
                "penstock: pin_and_copy copies batches; write batch(n) before it");
  static_assert(M != mistake::steps_without_batch,
                "penstock: steps(n) counts batches; write batch(b) before it");
  static_assert(M != mistake::cursor_after_batch,
                "penstock: shuffle_buffer mixes samples and stands after batch; move it before batch(n)");
  static_assert(M != mistake::no_such_field,
                "penstock: no field of that name reaches this stage; reached_by<...> beside this line shows "
                "the fields that do");
  static_assert(M != mistake::field_twice, "penstock: the same field is named twice; name each field once");
  static_assert(
      M != mistake::fields_need_names,
      "penstock: fields<...> chooses members by name and the element that reaches it has no names; drop it");
  static_assert(M != mistake::decode_nothing,
                "penstock: decode<> names no codec; write decode<zstd>, or decode<field<\"jpg\", jpeg>, ...> "
                "for some fields");
  static_assert(M != mistake::codec_wants_bytes,
                "penstock: a codec wants bytes and gets a value that is decoded already; remove one decode, "
                "or use map(f)");
  static_assert(M != mistake::decode_which_field,
                "penstock: decode<Codec> on a record with several fields; say which, as in "
                "decode<field<\"name\", Codec>>");
  static_assert(M != mistake::not_a_codec,
                "penstock: decode<...> was given a type that is no codec; a codec has decode(bytes, scratch) "
                "const and codec_name");
  static_assert(
      M != mistake::wrong_argument,
      "penstock: this stage's function cannot be called with the element that reaches it, which is that of "
      "reached_by<...> beside this line");
  static_assert(M != mistake::mutable_function,
                "penstock: the function would be shared by all workers and must be callable when const; "
                "remove `mutable` and "
                "take random numbers from an rng& second parameter");
  static_assert(M != mistake::returns_nothing,
                "penstock: map's function returns nothing; return the value that shall go on");
  static_assert(M != mistake::predicate_not_bool, "penstock: filter's function must return bool");
  static_assert(M != mistake::discovered_without_collate,
                "penstock: batch cannot stack values whose length is known only after decoding; write "
                "batch(n, ragged) or "
                "batch(n, pad_to_longest)");
  static_assert(M != mistake::open_sample_in_batch,
                "penstock: batch needs to know the fields of a sample; write fields<\"jpg\", \"cls\"> or "
                "decode<field<...>> "
                "before it");
  static_assert(M != mistake::not_batchable,
                "penstock: batch stacks numbers, arrays, texts, bytes and records of such, and gets what "
                "reached_by<...> beside this "
                "line names; write map(f) before it");
  static_assert(M != mistake::order_on_forward,
                "penstock: random access asked of a source that can only be read forward; use "
                "shuffle_buffer(k), or a source "
                "with an index");
  static_assert(M != mistake::order_after_decider,
                "penstock: this stage needs to know how many samples there are, and after filter or unbatch "
                "nobody knows, nor behind batch over a forward source; move "
                "it before");
  static_assert(M != mistake::order_after_cursor,
                "penstock: this stage computes positions and stands after shuffle_buffer, where positions "
                "come from a cursor; "
                "move it before");
  static_assert(
      M != mistake::cursor_after_decider,
      "penstock: shuffle_buffer after filter or unbatch would hold decoded samples; move it before them");
  static_assert(
      M != mistake::enumerate_after_decider,
      "penstock: enumerate gives a sample's position and stands after filter or unbatch; move it before");
  static_assert(M != mistake::not_expandable,
                "penstock: unbatch needs a range, an array, or a record of such, and gets what "
                "reached_by<...> beside this line names");
  static_assert(M != mistake::lost_by_a_stage,
                "penstock: require: the guarantee is lost by a stage of this chain, see its `loses`; remove "
                "it or the require");
  static_assert(M != mistake::lost_by_shuffle_buffer,
                "penstock: require: the guarantee is lost by shuffle_buffer (it loses indexed, and after "
                "shard also elastic, over a forward source resumable); use "
                "shuffle(seed, window(w)), or put shuffle_buffer before shard");
  static_assert(M != mistake::lost_by_decider,
                "penstock: require: the guarantee is lost by filter or unbatch (they lose indexed and "
                "lockstep, and after shard "
                "also elastic); lockstep comes back with steps(n), elastic by filtering before shard");
  static_assert(M != mistake::lost_by_forward,
                "penstock: require: the guarantee is lost by a source that can only be read forward; use a "
                "source with an index");
  static_assert(
      M != mistake::joins_no_source,
      "penstock: mix, zip and concat join sources, and sources with stages, and get something else; "
      "wrap a container in from(...)");
  static_assert(M != mistake::joins_forward,
                "penstock: mix, zip and concat compute with positions, and one of these sources can only be "
                "read forward; use a source with an index");
  static_assert(M != mistake::joins_sharded,
                "penstock: shard inside mix, zip or concat; positions are global, write shard(rank, world) "
                "once, behind it");
  static_assert(M != mistake::joins_batched,
                "penstock: batch inside mix, zip or concat, which join samples; write batch(n) behind it");
  static_assert(M != mistake::joins_cursor,
                "penstock: shuffle_buffer inside mix, zip or concat, which compute with positions; write "
                "shuffle(seed, window(w)) there, or shuffle_buffer behind it");
  static_assert(
      M != mistake::joins_decider,
      "penstock: filter or unbatch inside mix, zip or concat, which must know how many samples there "
      "are; write it behind");
  static_assert(M != mistake::joins_annotation,
                "penstock: inside mix, zip and concat only seed(n) is an annotation of its own; workers, "
                "prefetch, memory and the like speak of the whole run, write them behind it");
  static_assert(
      M != mistake::joins_bad_samples,
      "penstock: bad_samples inside mix, zip or concat; a budget counts the samples of the whole run, "
      "write it behind them");
  static_assert(M != mistake::joins_nothing,
                "penstock: mix, zip and concat need at least one source to join");
  static_assert(M != mistake::mix_without_weights,
                "penstock: mix begins with what each source gives: weights{...}, weight_schedule{...}, "
                "proportions{...}, repeats{...} or choose{...}, and then the sources");
  static_assert(M != mistake::mix_list_and_more,
                "penstock: a std::vector is all the sources of a mix, and only a stopping policy, "
                "samples_per_epoch(n) and seed(n) stand behind it; put every source into it");
  static_assert(M != mistake::mix_option_twice,
                "penstock: mix takes one stopping policy, one samples_per_epoch(n) and one seed(n), and one "
                "of them is there twice; write one");
  static_assert(
      M != mistake::elements_differ,
      "penstock: mix and concat give one kind of element, and the elements of these sources are of "
      "different types; make them the same with map(f) or fields<...>, see reached_by<...> beside this "
      "line");
  static_assert(
      M != mistake::zip_needs_names,
      "penstock: zip joins records, and one of these elements has no field names; give one name for "
      "each source, as in zip<\"image\", \"label\">(images, labels)");
  static_assert(
      M != mistake::zip_same_field,
      "penstock: zip joins the fields of all its sources in one record, and two of them are called the "
      "same; give one name for each source, as in zip<\"left\", \"right\">(a, b)");
  static_assert(M != mistake::zip_name_count,
                "penstock: zip<...> takes one name for each source, or none where all elements are records");
  static_assert(M != mistake::require_nothing,
                "penstock: require<> names no guarantee; write require<guarantee::elastic> or another");
  static_assert(M != mistake::two_bad_samples,
                "penstock: bad_samples twice; a pipeline has one answer to bad samples, remove one of them");
  static_assert(M != mistake::replace_on_forward,
                "penstock: bad_samples::replace draws another sample, and this source can only be read "
                "forward; write bad_samples::skip(n), or use a source with an index");
}

}  // namespace penstock::inline v0_1
