import { expect, it } from 'vitest';
import { cliPage } from './cli-page.ts';

it('docs/cli.md is what the commands say of themselves (npm run openapi writes it anew)', async () => {
  await expect(await cliPage()).toMatchFileSnapshot('../../docs/cli.md');
});
