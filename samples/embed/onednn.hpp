/* The few oneDNN primitives that a BERT encoder is made of, over float32 memory of anybody's: nothing is reordered or copied. */
#ifndef SAMPLE_EMBED_ONEDNN_HPP
#define SAMPLE_EMBED_ONEDNN_HPP

#include <cstdint>
#include <utility>
#include <vector>

#include <dnnl.hpp>

class OneDnn {
  public:
    using Dims = dnnl::memory::dims;

    /* A matrix, or several, as strides describe it. Primitives read weights through the same type and do not write them. */
    struct View {
        dnnl::memory::desc desc;
        void *data;
    };
    static View view(const float *data, Dims dims, Dims strides) {
        return {dnnl::memory::desc(std::move(dims), dnnl::memory::data_type::f32, std::move(strides)), const_cast<float *>(data)};
    }

    enum class After { nothing, gelu, add_to_target };

    /* target = source x weights (+ bias) times scale, then what `after` says. */
    void matmul(const View &source, const View &weights, const View *bias, const View &target, After after = After::nothing,
                float scale = 1) {
        dnnl::post_ops post;
        if (scale != 1) append(post, dnnl::algorithm::eltwise_linear, scale);
        if (after == After::gelu) append(post, dnnl::algorithm::eltwise_gelu_erf, 0);
        if (after == After::add_to_target) post.append_sum(1.0f);
        dnnl::primitive_attr attributes;
        attributes.set_post_ops(post);
        const dnnl::memory::desc none;
#if DNNL_VERSION_MAJOR < 3
        const dnnl::matmul::desc desc(source.desc, weights.desc, bias ? bias->desc : none, target.desc);
        const dnnl::matmul::primitive_desc how(desc, attributes, engine_);
#else
        const dnnl::matmul::primitive_desc how(engine_, source.desc, weights.desc, bias ? bias->desc : none, target.desc, attributes);
#endif
        Arguments arguments = {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, target}};
        if (bias) arguments.push_back({DNNL_ARG_BIAS, *bias});
        run(dnnl::matmul(how), arguments);
    }

    /* Over the last axis of three, in place. */
    void softmax(const View &scores) {
#if DNNL_VERSION_MAJOR < 3
        const dnnl::softmax_forward::desc desc(dnnl::prop_kind::forward_inference, scores.desc, 2);
        const dnnl::softmax_forward::primitive_desc how(desc, engine_);
#else
        const dnnl::softmax_forward::primitive_desc how(engine_, dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate,
                                                        scores.desc, scores.desc, 2);
#endif
        run(dnnl::softmax_forward(how), {{DNNL_ARG_SRC, scores}, {DNNL_ARG_DST, scores}});
    }

    /* Over the rows, in place. */
    void layer_norm(const View &rows, const View &scale, const View &shift, float epsilon) {
        const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
#if DNNL_VERSION_MAJOR < 3
        const dnnl::layer_normalization_forward::desc desc(dnnl::prop_kind::forward_inference, rows.desc, epsilon, flags);
        const dnnl::layer_normalization_forward::primitive_desc how(desc, engine_);
#else
        const dnnl::layer_normalization_forward::primitive_desc how(engine_, dnnl::prop_kind::forward_inference, rows.desc, rows.desc,
                                                                    epsilon, flags);
#endif
        run(dnnl::layer_normalization_forward(how),
            {{DNNL_ARG_SRC, rows}, {DNNL_ARG_DST, rows}, {DNNL_ARG_SCALE, scale}, {DNNL_ARG_SHIFT, shift}});
    }

  private:
    using Arguments = std::vector<std::pair<int, View>>;

    static void append(dnnl::post_ops &post, dnnl::algorithm algorithm, float alpha) {
#if DNNL_VERSION_MAJOR < 3
        post.append_eltwise(1.0f, algorithm, alpha, 0.0f);
#else
        post.append_eltwise(algorithm, alpha, 0.0f);
#endif
    }

    void run(const dnnl::primitive &primitive, const Arguments &arguments) {
        std::unordered_map<int, dnnl::memory> memories;
        for (const auto &[number, view] : arguments) memories.emplace(number, dnnl::memory(view.desc, engine_, view.data));
        primitive.execute(stream_, memories);
        stream_.wait();
    }

    dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
    dnnl::stream stream_{engine_};
};

#endif
