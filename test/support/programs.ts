import { spawnSync } from 'node:child_process';

/**
 * The programs that tests may need, by the word in a file's name that asks for them: `X.openssh.test.ts` is run where
 * `asks` succeeds. .ci/run installs Debian's packages of all.
 */
const PROGRAMS: Readonly<Record<string, { asks: readonly string[]; package: string }>> = {
  curl: { asks: ['curl', '--version'], package: 'curl' },
  libvirt: { asks: ['virt-xml-validate', '--version'], package: 'libvirt-clients, libxml2-utils' },
  openssh: { asks: ['ssh', '-V'], package: 'openssh-client, openssh-server' },
  openssl: { asks: ['openssl', 'version'], package: 'openssl' },
  python: { asks: ['python3', '--version'], package: 'python3' },
};

/** Those words: a file whose name has one belongs to the integration tests. */
export const programs = Object.keys(PROGRAMS);

/** The words whose program is not on this machine, with the package that brings it; asked only for a run of the integration tests. */
export const LEFT_OUT: ReadonlyMap<string, string> = new Map(
  process.argv.includes('integration')
    ? Object.entries(PROGRAMS)
        .filter(([, { asks }]) => !succeeds(asks))
        .map(([word, { package: name }]) => [word, name])
    : [],
);

function succeeds([command = '', ...args]: readonly string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0;
}
