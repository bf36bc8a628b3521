//go:build system

package clients

import "testing"

func TestDatabases(t *testing.T) {
	t.Run("postgresql", func(t *testing.T) {
		postgres(t)
		conninfo := "host=" + dbHost + " user=tester dbname=postgres connect_timeout=20 "
		query := func(more string) []string { return []string{"psql", conninfo + more, "-XAtc", "select 6*7"} }
		nowhere := []string{"psql", "host=" + deniedHost + " user=tester connect_timeout=20", "-XAtc", "select 1"}
		for _, c := range []client{
			{
				name: "plain", needs: []string{"psql"}, rules: []string{dbHost + ":5432"}, deaf: true,
				argv: query("sslmode=disable"), want: `(?m)^42$`,
				denied: nowhere, refusal: `could not translate host name "denied.test" to address`,
			},
			{
				name: "tls", needs: []string{"psql"}, rules: []string{dbHost + ":5432"}, deaf: true,
				argv: query("sslmode=verify-full sslrootcert={ca}"), want: `(?m)^42$`,
			},
		} {
			c.series = true
			c.run(t)
		}
	})
	t.Run("redis", func(t *testing.T) {
		redis(t)
		client{
			name: "redis-cli", needs: []string{"sh", "redis-cli"}, rules: []string{cacheHost + ":6379"}, deaf: true, series: true,
			argv: []string{"sh", "-c", "redis-cli -h " + cacheHost + " set k 42 && redis-cli -h " + cacheHost + " get k"}, want: `42`,
			denied: []string{"redis-cli", "-h", deniedHost, "ping"}, refusal: `Could not connect to Redis at denied.test:6379: (Name or service not known|Temporary failure)`,
		}.run(t)
	})
}
