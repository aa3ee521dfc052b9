import { join } from 'node:path';
import { expect, it } from 'vitest';
import { packageRoot } from '../contract/package.ts';
import { loadRequirements } from '../contract/requirements.ts';
import { matrixDocument } from './matrix-document.ts';
import { mutants } from './mutants.ts';
import { variations } from './variations.ts';

it('docs/conformance-matrix.md is what was run', async () => {
  const document = matrixDocument(mutants, variations, loadRequirements().rows);
  await expect(document).toMatchFileSnapshot(join(packageRoot, 'docs', 'conformance-matrix.md'));
});
