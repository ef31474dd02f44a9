"""What the keys of config.json and generation_config.json do in transformers, and what an import makes of them.

A key that is in none of these tables does nothing in transformers, which keeps it and never reads it. The lists of keys
are those of MarianConfig, M2M100Config and GenerationConfig in transformers 4.57 and 5.24.
"""

from typing import Any

from tf_transformer.errors import InputError
from tf_transformer.importers.folder import Settings, shown

CONFIG_TAKEN = frozenset(
    {
        *(
            "_name_or_path",
            "activation_dropout",
            "architectures",
            "activation_function",
            "attention_dropout",
            "d_model",
        ),
        *("decoder_attention_heads", "decoder_ffn_dim", "decoder_layers", "decoder_vocab_size", "dropout"),
        *("encoder_attention_heads", "encoder_ffn_dim", "encoder_layers", "max_position_embeddings", "model_type"),
        *("quantization_config", "scale_embedding", "share_encoder_decoder_embeddings", "tie_word_embeddings"),
        *("tokenizer_class", "vocab_size"),
    }
)
"""The keys of config.json that an import reads. It also reads those of GENERATION_TAKEN there."""
CONFIG_WITHOUT_EFFECT = frozenset(
    {
        # What Marian's converter left behind, and no version reads.
        *("add_bias_logits", "add_final_layer_norm", "classif_dropout", "classifier_dropout", "extra_pos_embeddings"),
        *("normalize_before", "normalize_embedding", "static_position_embeddings", "gradient_checkpointing"),
        # Of training alone: the import keeps no layer drop.
        *("decoder_layerdrop", "encoder_layerdrop", "init_std"),
        # The form of the output, labels, number formats, caches, the origin.
        *("_attn_implementation_internal", "_experts_implementation_internal", "_output_attentions"),
        *("_post_init_done", "add_cross_attention", "chunk_size_feed_forward"),
        *("cross_attention_hidden_size", "dtype", "finetuning_task", "id2label", "label2id", "num_hidden_layers"),
        *("problem_type", "return_dict", "sep_token_id", "task_specific_params", "tf_legacy_loss", "torch_dtype"),
        *("torchscript", "use_bfloat16"),
    }
)
CONFIG_REFUSED: dict[str, tuple[Any, ...]] = {
    "is_encoder_decoder": (True,),
    "is_decoder": (False,),
    "pruned_heads": ({},),
    "tie_encoder_decoder": (False,),
}
"""Keys of config.json that our layers have no option for, with the values that they may have."""

GENERATION_TAKEN = frozenset(
    {
        *("bad_words_ids", "decoder_start_token_id", "early_stopping", "eos_token_id", "forced_bos_token_id"),
        *("length_penalty", "max_length", "max_new_tokens", "min_length", "min_new_tokens", "no_repeat_ngram_size"),
        *("num_beams", "pad_token_id", "renormalize_logits", "suppress_tokens"),
    }
)
GENERATION_WITHOUT_EFFECT = frozenset(
    {
        # At the length limit transformers forces this token, where we stop.
        "forced_eos_token_id",
        # What only sampling reads; `do_sample` is warned of.
        *("epsilon_cutoff", "eta_cutoff", "min_p", "temperature", "top_h", "top_k", "top_p", "typical_p"),
        # Speculation and caches, which change the speed.
        *("assistant_confidence_threshold", "assistant_early_exit", "assistant_ensemble_weight"),
        *("assistant_lookbehind", "cache_config", "cache_implementation", "compile_config"),
        *("continuous_batching_config", "disable_compile", "is_assistant", "low_memory", "max_cache_len"),
        *("max_matching_ngram_size", "num_assistant_tokens", "num_assistant_tokens_schedule", "prefill_chunk_size"),
        *("prompt_lookup_num_tokens", "return_legacy_cache", "speculation_type", "target_lookbehind", "use_cache"),
        "use_mtp",
        # The form of the output, numbers that are not finite, the origin.
        *("_commit_hash", "_from_model_config", "bos_token_id", "num_return_sequences", "output_attentions"),
        *("output_hidden_states", "output_logits", "output_scores", "remove_invalid_values"),
        *("return_dict_in_generate", "transformers_version"),
    }
)
GENERATION_NOT_OURS: dict[str, tuple[Any, ...]] = {
    "begin_suppress_tokens": ([],),
    "constraints": ([],),
    "diversity_penalty": (0,),
    "do_sample": (False,),
    "dola_layers": (),
    "encoder_no_repeat_ngram_size": (0,),
    "encoder_repetition_penalty": (1,),
    "exponential_decay_length_penalty": (),
    "force_words_ids": ([],),
    "guidance_scale": (1,),
    "max_time": (),
    "num_beam_groups": (1,),
    "penalty_alpha": (0,),
    "prefix": ("",),
    "repetition_penalty": (1,),
    "sequence_bias": ({}, []),
    "stop_strings": ([],),
    "token_healing": (False,),
    "watermarking_config": ({},),
}
"""Settings of a search that ours does not have, with the values that do nothing. Others are warned of."""


def check_layers(config: Settings) -> None:
    """Check the settings that our layers have no option for; None is as good as the default.

    Raises:
        InputError: one of them is set.
    """
    for name, allowed in CONFIG_REFUSED.items():
        value = config.values.get(name)
        if value is not None and value not in allowed:
            raise InputError(
                f"{config.file}: models with {name}={shown(value)} cannot be imported; it must be {allowed[0]!r}"
            )


def not_ours(settings: dict[str, Any]) -> list[str]:
    """Return those settings of a search that would change its result, and that ours does not have."""
    there = {name: settings[name] for name in GENERATION_NOT_OURS if settings.get(name) is not None}
    return [f"{name}={shown(value)}" for name, value in there.items() if value not in GENERATION_NOT_OURS[name]]
