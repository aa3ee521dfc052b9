import { isAbsolute, relative } from 'node:path';
import type { ServerFlags } from './serving.ts';

interface Started {
  env: Readonly<Record<string, string | undefined>>;
  /** The file that node runs. */
  script: string;
  cwd: string;
}

/**
 * Returns a command line to paste into a terminal where this server was started, with the same program, configuration
 * and database. It omits a password in the URL.
 */
export function sameBerth(
  args: string,
  { config, database }: Pick<ServerFlags, 'config' | 'database'>,
  started: Started = { env: process.env, script: process.argv[1] ?? '', cwd: process.cwd() },
  prefix: 'BERTH_' | 'BERTH_MARKETPLACE_' = 'BERTH_',
): string {
  const { env } = started;
  const file = config ?? env[`${prefix}CONFIG`];
  const flags = file ? [`--config ${quoted(file)}`] : [];
  if (database !== undefined) flags.push(`--database ${quoted(withoutPassword(database))}`);
  // Prints the variable's name, because its value may contain a password and this text is logged.
  else if (env[`${prefix}DATABASE`]) flags.push(`--database "$${prefix}DATABASE"`);
  return [programOf(started), args, ...flags].join(' ');
}

/** Like {@link sameBerth}, for `berth marketplace`. */
export function sameMarketplace(
  args: string,
  flags: Pick<ServerFlags, 'config' | 'database'>,
  started?: Started,
): string {
  return sameBerth(`marketplace ${args}`, flags, started, 'BERTH_MARKETPLACE_');
}

function programOf({ env, script, cwd }: Started): string {
  const { npm_command: command, npm_lifecycle_event: event } = env;
  if (command === 'exec') return 'npx berth';
  // With Berth as a dependency, its program is not in the PATH.
  const [, project] = /^(.*)\/node_modules\/\.bin\/[^/]+$/.exec(script) ?? [];
  if (project !== undefined) return `${cwd}/`.startsWith(`${project}/`) ? 'npx berth' : quoted(script);
  if (!script.endsWith('.ts')) return 'berth';
  // In a checkout, npm runs its scripts in the root, wherever they were called.
  if (event === 'start' || event === 'berth') return 'npm run -s berth --';
  const path = relative(cwd, script);
  return `node ${quoted(isAbsolute(path) ? script : path)}`;
}

const withoutPassword = (url: string): string => url.replace(/(\/\/[^:@/]*):[^@]*@/, '$1:…@');

function quoted(text: string): string {
  return /^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
