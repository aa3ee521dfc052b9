import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { packageRoot } from './package.ts';
import { suiteDigest } from './suite-digest.ts';

it('the digest of a clone is that of its files, as programs of the system compute it', () => {
  const script = `
    { printf '%s\\n' package.json package-lock.json conformance/requirements.yaml conformance/report/schema.json \\
        openapi/orchestrator.v1.json fixtures/transitions.json
      find conformance -name '*.ts' | grep -vE '\\.(test|fixture|matrix)\\.ts$|^conformance/mutants/'; } |
      LC_ALL=C sort | xargs sha256sum | sha256sum`;
  const [printed] = execFileSync('bash', ['-c', script], { cwd: packageRoot, encoding: 'utf8' }).split(' ');
  expect(suiteDigest()).toBe(printed);
});
