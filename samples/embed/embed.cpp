/* Sentence embeddings with all-MiniLM-L6-v2: libhurray brings the weights, oneDNN computes with them where they lie.
 * usage: embed MODEL TOKENS EXPECTED     (MODEL: any format that libhurray loads)
 * TOKENS: the token numbers of a sentence a line. EXPECTED: its embedding. Lines that begin with # are passed over. */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hurray.hpp"
#include "onednn.hpp"

namespace {

constexpr int kWidth = 384, kHeads = 12, kHead = kWidth / kHeads, kMiddle = 1536, kLayers = 6;
constexpr float kEpsilon = 1e-12f;

/* The weights by name. The set owns them; it has to live as long as anything points to them. */
class Weights {
  public:
    explicit Weights(const char *path) : set_(load(path)) {}

    const float *get(const std::string &name, std::vector<std::uint64_t> shape) const {
        const hurray::Tensor tensor = set_[name];
        if (tensor.descriptor().element_type() != HURRAY_TYPE_FLOAT32 || tensor.descriptor().shape() != shape)
            throw std::runtime_error(name + " is not the float32 tensor that this model has there");
        return tensor.buffer(0).as<const float>();
    }
    std::uint64_t rows(const std::string &name) const { return set_[name].descriptor().shape().at(0); }

  private:
    static hurray::TensorSet load(const char *path) {
        HurrayLoaderOptions options = hurray::loader_options();
        options.flags = HURRAY_LOAD_READ_ONLY; /* nobody writes the weights: a warm file need not be copied */
        hurray::Loader loader(path, options);
        loader.select("embeddings.*").select("encoder.*"); /* the pooler's weights play no part */
        hurray::TensorSet set = loader.load();
        const HurrayLoadStats stats = loader.stats();
        std::printf("%llu tensors, %llu bytes, %llu of them used where the file is mapped\n", (unsigned long long)stats.tensors,
                    (unsigned long long)stats.payload_bytes, (unsigned long long)stats.bytes_in_place);
        return set;
    }
    hurray::TensorSet set_;
};

class Encoder {
  public:
    explicit Encoder(const char *path) : weights_(path) {}

    /* The mean of the last hidden states, divided by its length. */
    std::vector<float> embed(const std::vector<int> &tokens) {
        const long count = (long)tokens.size();
        std::vector<float> hidden = lookup(tokens);
        norm(hidden.data(), count, "embeddings.LayerNorm");
        for (int layer = 0; layer < kLayers; layer++) run_layer(hidden.data(), count, "encoder.layer." + std::to_string(layer) + ".");
        std::vector<double> mean(kWidth, 0.0);
        for (std::size_t i = 0; i < hidden.size(); i++) mean[i % kWidth] += hidden[i];
        double length = 0;
        for (double value : mean) length += value * value;
        std::vector<float> out;
        for (double value : mean) out.push_back((float)(value / std::sqrt(length)));
        return out;
    }

  private:
    std::vector<float> lookup(const std::vector<int> &tokens) {
        const std::uint64_t words = weights_.rows("embeddings.word_embeddings.weight"),
                            places = weights_.rows("embeddings.position_embeddings.weight");
        const float *word = weights_.get("embeddings.word_embeddings.weight", {words, kWidth});
        const float *place = weights_.get("embeddings.position_embeddings.weight", {places, kWidth});
        const float *type = weights_.get("embeddings.token_type_embeddings.weight", {2, kWidth});
        std::vector<float> hidden;
        if (tokens.empty() || tokens.size() > places)
            throw std::runtime_error("a sentence has no token, or more than the model has positions");
        for (std::size_t t = 0; t < tokens.size(); t++) {
            if (tokens[t] < 0 || (std::uint64_t)tokens[t] >= words) throw std::runtime_error("a token is not in the vocabulary");
            for (std::size_t i = 0; i < kWidth; i++)
                hidden.push_back(word[(std::size_t)tokens[t] * kWidth + i] + place[t * kWidth + i] + type[i]);
        }
        return hidden;
    }

    void norm(float *rows, long count, const std::string &name) {
        dnn_.layer_norm(OneDnn::view(rows, {count, kWidth}, {kWidth, 1}),
                        OneDnn::view(weights_.get(name + ".weight", {kWidth}), {kWidth}, {1}),
                        OneDnn::view(weights_.get(name + ".bias", {kWidth}), {kWidth}, {1}), kEpsilon);
    }

    /* to = from x W^T + b; W is stored out x in, its transpose is a matter of strides. */
    void linear(const float *from, int in, float *to, int out, long count, const std::string &name,
                OneDnn::After after = OneDnn::After::nothing) {
        const OneDnn::View bias = OneDnn::view(weights_.get(name + ".bias", {(std::uint64_t)out}), {1, out}, {out, 1});
        dnn_.matmul(OneDnn::view(from, {count, in}, {in, 1}),
                    OneDnn::view(weights_.get(name + ".weight", {(std::uint64_t)out, (std::uint64_t)in}), {in, out}, {1, in}), &bias,
                    OneDnn::view(to, {count, out}, {out, 1}), after);
    }

    void run_layer(float *hidden, long count, const std::string &name) {
        const std::size_t n = (std::size_t)count;
        std::vector<float> query(n * kWidth), key(n * kWidth), value(n * kWidth), mixed(n * kWidth), scores(n * n * kHeads),
            middle(n * kMiddle);
        linear(hidden, kWidth, query.data(), kWidth, count, name + "attention.self.query");
        linear(hidden, kWidth, key.data(), kWidth, count, name + "attention.self.key");
        linear(hidden, kWidth, value.data(), kWidth, count, name + "attention.self.value");
        /* All heads at once: head h of a row is its columns h x 32 to h x 32 + 31. */
        const OneDnn::Dims heads = {kHeads, count, kHead}, strides = {kHead, kWidth, 1};
        const OneDnn::View table = OneDnn::view(scores.data(), {kHeads, count, count}, {count * count, count, 1});
        dnn_.matmul(OneDnn::view(query.data(), heads, strides), OneDnn::view(key.data(), {kHeads, kHead, count}, {kHead, 1, kWidth}),
                    nullptr, table, OneDnn::After::nothing, 1.0f / std::sqrt((float)kHead));
        dnn_.softmax(table);
        dnn_.matmul(table, OneDnn::view(value.data(), heads, strides), nullptr, OneDnn::view(mixed.data(), heads, strides));
        linear(mixed.data(), kWidth, hidden, kWidth, count, name + "attention.output.dense", OneDnn::After::add_to_target);
        norm(hidden, count, name + "attention.output.LayerNorm");
        linear(hidden, kWidth, middle.data(), kMiddle, count, name + "intermediate.dense", OneDnn::After::gelu);
        linear(middle.data(), kMiddle, hidden, kWidth, count, name + "output.dense", OneDnn::After::add_to_target);
        norm(hidden, count, name + "output.LayerNorm");
    }

    Weights weights_;
    OneDnn dnn_;
};

template <typename Number> std::vector<std::vector<Number>> read_lines(const char *path) {
    std::ifstream file(path);
    std::vector<std::vector<Number>> lines;
    if (!file) throw std::runtime_error(std::string("cannot open ") + path);
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#') continue;
        std::istringstream numbers(line);
        lines.emplace_back();
        for (Number number; numbers >> number;) lines.back().push_back(number);
    }
    return lines;
}

/* The largest difference of all sentences. */
double compare(Encoder &encoder, const char *tokens_path, const char *expected_path) {
    const auto tokens = read_lines<int>(tokens_path);
    const auto expected = read_lines<float>(expected_path);
    double worst = 0;
    if (tokens.empty() || tokens.size() != expected.size())
        throw std::runtime_error("tokens and expected embeddings are not of the same number");
    for (std::size_t s = 0; s < tokens.size(); s++) {
        const std::vector<float> got = encoder.embed(tokens[s]);
        double largest = 0;
        if (expected[s].size() != got.size()) throw std::runtime_error("an expected embedding has not 384 numbers");
        for (std::size_t i = 0; i < got.size(); i++) {
            const double difference = std::fabs((double)got[i] - (double)expected[s][i]);
            if (!(difference <= largest)) largest = difference; /* not a number is a difference, too */
        }
        std::printf("sentence %zu: %zu tokens, first numbers %.6f %.6f %.6f, largest difference %.2g\n", s + 1, tokens[s].size(),
                    (double)got[0], (double)got[1], (double)got[2], largest);
        if (!(largest <= worst)) worst = largest;
    }
    return worst;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 4) return std::fprintf(stderr, "usage: embed MODEL TOKENS EXPECTED\n"), 2;
    try {
        Encoder encoder(argv[1]);
        const double worst = compare(encoder, argv[2], argv[3]);
        return worst <= 1e-4 ? 0 : 1;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
