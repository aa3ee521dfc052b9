import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../../test/support/processes/process.ts';

const examples = join(import.meta.dirname, '../../../examples/drivers');

/** The output of `ps` for a server that was killed: it has lost its arguments, but may still hold its port. */
const PS = `n=$(cat "$0.calls" 2>&- || echo 0)
echo $((n + 1)) > "$0.calls"
case $n in
  0) echo "4242 1 Ss sshd: /usr/sbin/sshd -f $(dirname "$0")/machines/x/sshd_config [listener]";;
  1|2) echo '4242 1 Rs [sshd]';;
  *) echo '4242 1 Zs [sshd] <defunct>';;
esac`;

/** Tests what the template of a driver does beside the calls of the protocol. */
export function describeTemplate(template: string, program: string): void {
  describe(template, () => {
    it('a stop is done when the killed server has exited, not when its arguments are gone', () => {
      using folder = temporaryFolder();
      const own = (name: string): string => join(folder.path, name);
      mkdirSync(own('machines/x'), { recursive: true });
      writeFileSync(own('machines/x/machine.json'), '{"ref":"x"}');
      writeProgram(own('ps'), PS);
      writeProgram(own('kill'), '');
      expect(ask(folder.path, { id: '1', method: 'stop', ref: 'x' })).toEqual({
        id: '1',
        result: { outcome: 'done', value: { ref: 'x', power: 'stopped' } },
      });
      // One call for each of the four states, and one for the answer.
      expect(readFileSync(own('ps.calls'), 'utf8').trim()).toBe('5');
    });

    it('a machine keeps a port that the system assigns to no other program, even while it is stopped', () => {
      using folder = temporaryFolder();
      mkdirSync(join(folder.path, 'machines'));
      // Without a host key the server does not start; the port is chosen before that.
      writeProgram(join(folder.path, 'ssh-keygen'), '');
      const spec = { ref: 'x', ssh_keys: [], note: '' };
      expect(ask(folder.path, { id: '1', method: 'create', ref: 'x', spec })).toHaveProperty('error');
      const { endpoint } = JSON.parse(readFileSync(join(folder.path, 'machines/x/machine.json'), 'utf8'));
      expect(endpoint.ssh_port).toBeGreaterThanOrEqual(20_000);
      expect(endpoint.ssh_port).toBeLessThan(32_768);
    });

    function ask(folder: string, request: object): unknown {
      const { stdout, stderr } = spawnSync(program, [join(examples, template), join(folder, 'machines')], {
        input: `${JSON.stringify(request)}\n`,
        encoding: 'utf8',
        env: { PATH: [folder, process.env['PATH'] ?? ''].join(delimiter) },
      });
      return stderr === '' ? JSON.parse(stdout) : stderr;
    }
  });
}

function writeProgram(file: string, script: string): void {
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
}
