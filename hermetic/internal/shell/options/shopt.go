package options

import "slices"

func defaultShopts() map[string]bool {
	return map[string]bool{
		"checkwinsize": true, "cmdhist": true, "complete_fullquote": true, "extquote": true, "force_fignore": true,
		"globasciiranges": true, "globskipdots": true, "hostcomplete": true, "interactive_comments": true,
		"patsub_replacement": true, "progcomp": true, "promptvars": true, "sourcepath": true,
	}
}

// Shopts lists the names of all options of shopt.
func Shopts() []string {
	return []string{
		"autocd", "assoc_expand_once", "cdable_vars", "cdspell", "checkhash", "checkjobs", "checkwinsize", "cmdhist", "compat31",
		"compat32", "compat40", "compat41", "compat42", "compat43", "compat44", "complete_fullquote", "direxpand", "dirspell",
		"dotglob", "execfail", "expand_aliases", "extdebug", "extglob", "extquote", "failglob", "force_fignore",
		"globasciiranges", "globskipdots", "globstar", "gnu_errfmt", "histappend", "histreedit", "histverify", "hostcomplete",
		"huponexit", "inherit_errexit", "interactive_comments", "lastpipe", "lithist", "localvar_inherit", "localvar_unset",
		"login_shell", "mailwarn", "no_empty_cmd_completion", "nocaseglob", "nocasematch", "noexpand_translation", "nullglob",
		"patsub_replacement", "progcomp", "progcomp_alias", "promptvars", "restricted_shell", "shift_verbose", "sourcepath",
		"varredir_close", "xpg_echo",
	}
}

// ShoptsOn lists the options of shopt that are on, sorted: $BASHOPTS.
func (s *Set) ShoptsOn() []string {
	var out []string
	for _, n := range Shopts() {
		if s.Shopt[n] {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}
