package activity

import "bytes"

// form is how the keys of one provider look: a prefix, then characters of some
// classes, and of extra.
type form struct {
	prefix   string
	class    byte
	extra    string
	min, max int // characters behind the prefix
	kind     string
}

// forms are the keys that are known by their prefix. Sources are the providers'
// own pages on their keys and on scanning for them. Of two prefixes the longer
// one stands first.
var forms = []form{
	{"mcp_agt_", hexa, "", 16, 64, "mcpproxy_token"},

	{"AKIA", digit | upper, "", 16, 16, "aws_access_key"},
	{"ASIA", digit | upper, "", 16, 16, "aws_access_key"},
	{"ABIA", digit | upper, "", 16, 16, "aws_access_key"},
	{"ACCA", digit | upper, "", 16, 16, "aws_access_key"},
	{"AIza", word, "", 35, 35, "google_api_key"},
	{"GOCSPX-", word, "", 28, 28, "google_oauth_secret"},
	{"ya29.", word, ".", 20, 2048, "google_oauth_token"},

	{"github_pat_", word, "", 36, 255, "github_token"},
	{"ghp_", digit | upper | lower, "", 36, 255, "github_token"},
	{"gho_", digit | upper | lower, "", 36, 255, "github_token"},
	{"ghu_", digit | upper | lower, "", 36, 255, "github_token"},
	{"ghs_", word, ".", 36, 2048, "github_token"},
	{"ghr_", digit | upper | lower, "", 36, 255, "github_token"},
	{"glpat-", word, ".", 20, 300, "gitlab_token"},
	{"gldt-", word, "", 20, 64, "gitlab_token"},
	{"glrt-", word, ".", 20, 300, "gitlab_token"},
	{"glrtr-", word, "", 20, 64, "gitlab_token"},
	{"glcbt-", word, "", 20, 64, "gitlab_token"},
	{"glptt-", word, "", 40, 64, "gitlab_token"},
	{"glft-", word, "", 20, 64, "gitlab_token"},
	{"glsoat-", word, "", 20, 64, "gitlab_token"},
	{"glagent-", word, "", 50, 64, "gitlab_token"},
	{"gloas-", word, "", 64, 64, "gitlab_token"},
	{"ATATT3", word, "=", 50, 300, "atlassian_token"},
	{"ATBB", digit | upper | lower, "", 32, 32, "atlassian_token"},

	{"xoxb-", word, "", 20, 255, "slack_token"},
	{"xoxa-", word, "", 20, 255, "slack_token"},
	{"xoxp-", word, "", 20, 255, "slack_token"},
	{"xoxr-", word, "", 20, 255, "slack_token"},
	{"xoxs-", word, "", 20, 255, "slack_token"},
	{"xoxc-", word, "", 20, 255, "slack_token"},
	{"xoxd-", word, "", 20, 255, "slack_token"},
	{"xoxe-", word, "", 20, 255, "slack_token"},
	{"xoxe.", word, ".", 20, 255, "slack_token"},
	{"xapp-", word, "", 20, 255, "slack_token"},

	{"sk_live_", digit | upper | lower, "", 16, 255, "stripe_key"},
	{"sk_test_", digit | upper | lower, "", 16, 255, "stripe_key"},
	{"rk_live_", digit | upper | lower, "", 16, 255, "stripe_key"},
	{"rk_test_", digit | upper | lower, "", 16, 255, "stripe_key"},
	{"whsec_", coded, "=", 24, 255, "webhook_secret"},
	{"sq0atp-", word, "", 22, 22, "square_token"},
	{"sq0csp-", word, "", 43, 43, "square_token"},
	{"shpat_", hexa, "", 32, 32, "shopify_token"},
	{"shpca_", hexa, "", 32, 32, "shopify_token"},
	{"shppa_", hexa, "", 32, 32, "shopify_token"},
	{"shpss_", hexa, "", 32, 32, "shopify_token"},

	{"sk-ant-", word, "", 24, 255, "anthropic_key"},
	{"sk-or-v1-", hexa, "", 64, 64, "openrouter_key"},
	{"sk-proj-", word, "", 40, 255, "openai_key"},
	{"sk-svcacct-", word, "", 40, 255, "openai_key"},
	{"sk-admin-", word, "", 40, 255, "openai_key"},
	{"sk-", digit | upper | lower, "", 32, 255, "openai_key"},
	{"hf_", digit | upper | lower, "", 30, 64, "huggingface_token"},
	{"api_org_", digit | upper | lower, "", 34, 34, "huggingface_token"},
	{"gsk_", digit | upper | lower, "", 48, 64, "groq_key"},
	{"xai-", digit | upper | lower, "", 70, 100, "xai_key"},
	{"pplx-", digit | upper | lower, "", 48, 64, "perplexity_key"},
	{"r8_", word, "", 37, 37, "replicate_token"},
	{"lsv2_pt_", word, "", 32, 64, "langsmith_key"},
	{"lsv2_sk_", word, "", 32, 64, "langsmith_key"},
	{"tvly-", word, "", 20, 64, "tavily_key"},

	{"npm_", digit | upper | lower, "", 36, 36, "npm_token"},
	{"pypi-", word, "", 50, 2048, "pypi_token"},
	{"rubygems_", hexa, "", 48, 48, "rubygems_key"},
	{"dckr_pat_", word, "", 24, 64, "docker_token"},
	{"dckr_oat_", word, "", 24, 64, "docker_token"},

	{"SG.", word, ".", 60, 80, "sendgrid_key"},
	{"SK", hexa, "", 32, 32, "twilio_key"},
	{"key-", hexa, "", 32, 32, "mailgun_key"},
	{"dop_v1_", hexa, "", 64, 64, "digitalocean_token"},
	{"doo_v1_", hexa, "", 64, 64, "digitalocean_token"},
	{"dor_v1_", hexa, "", 64, 64, "digitalocean_token"},
	{"dapi", hexa, "-", 32, 34, "databricks_token"},
	{"hvs.", word, "", 24, 300, "vault_token"},
	{"hvb.", word, "", 24, 300, "vault_token"},
	{"dp.pt.", digit | upper | lower, "", 40, 64, "doppler_token"},
	{"dp.st.", word, ".", 40, 100, "doppler_token"},
	{"glsa_", word, "", 40, 64, "grafana_token"},
	{"glc_", coded, "=", 40, 400, "grafana_token"},
	{"lin_api_", digit | upper | lower, "", 40, 40, "linear_key"},
	{"ntn_", digit | upper | lower, "", 40, 64, "notion_token"},
	{"secret_", digit | upper | lower, "", 43, 43, "notion_token"},
	{"figd_", word, "", 40, 64, "figma_token"},
	{"PMAK-", word, "", 59, 59, "postman_key"},
	{"NRAK-", digit | upper, "", 27, 27, "newrelic_key"},
	{"sntrys_", coded, "=_", 40, 400, "sentry_token"},
	{"sntryu_", hexa, "", 64, 64, "sentry_token"},
	{"sbp_", hexa, "", 40, 40, "supabase_key"},
	{"sb_secret_", word, "", 24, 64, "supabase_key"},
	{"pscale_tkn_", word, ".=", 32, 64, "planetscale_token"},
	{"pscale_pw_", word, ".=", 32, 64, "planetscale_token"},
	{"tskey-", word, "", 20, 100, "tailscale_key"},
	{"AGE-SECRET-KEY-1", digit | upper, "", 58, 58, privateKey},
}

// firsts are the indexes of forms by their first byte.
var firsts = func() (table [256][]uint8) {
	for i, f := range forms {
		table[f.prefix[0]] = append(table[f.prefix[0]], uint8(i))
	}
	return table
}()

// known reports what the start of a run is by its form, and its length; 0 for
// nothing. The first word of the run has wordEnd characters.
func known(run []byte, wordEnd int) (n int, kind string) {
	for _, i := range firsts[run[0]] {
		f := &forms[i]
		if len(run) < len(f.prefix)+f.min || string(run[:len(f.prefix)]) != f.prefix {
			continue
		}
		n := f.tail(run[len(f.prefix):])
		end := len(f.prefix) + n
		if n < f.min || n > f.max || end < wordEnd || isExample(run[:end]) {
			continue
		}
		return end, f.kind
	}
	if run[0] == 'e' {
		return jwt(run)
	}
	return 0, ""
}

// tail counts the characters behind the prefix.
func (f *form) tail(b []byte) int {
	n := 0
	for n <= f.max && n < len(b) && (classes[b[n]]&f.class != 0 || f.extra != "" && bytes.IndexByte([]byte(f.extra), b[n]) >= 0) {
		n++
	}
	for n > 0 && b[n-1] == '.' { // the end of a sentence
		n--
	}
	return n
}

// isExample reports whether a key is one that documentation shows.
func isExample(key []byte) bool {
	if bytes.HasSuffix(key, []byte("EXAMPLE")) {
		return true
	}
	tail := key[len(key)-8:]
	return bytes.Count(tail, tail[:1]) == len(tail) // ghp_xxxxxxxx
}

// jwt reports the length of a JSON web token at the start of a run: three words
// between dots, the first two of which begin with {" in base64.
func jwt(run []byte) (n int, kind string) {
	const open = "eyJ"
	if !bytes.HasPrefix(run, []byte(open)) {
		return 0, ""
	}
	header := count(run, word)
	if header < 12 || header+1 >= len(run) || run[header] != '.' || !bytes.HasPrefix(run[header+1:], []byte(open)) {
		return 0, ""
	}
	end := header + 1
	end += count(run[end:], word)
	if end < len(run) && run[end] == '.' { // an unsigned one may end with it
		end++
		end += count(run[end:], word)
	}
	return end, "jwt"
}
