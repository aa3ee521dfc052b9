import { expect, it } from 'vitest';
import { faultCatalog } from './catalog/catalog.ts';
import { type Fault, faultLayers } from './fault.ts';

const rows = Object.entries(faultCatalog) as [string, Fault][];

function rowOf([name, { does, strikes, params, times, on }]: [string, Fault]): string {
  const settings = Object.keys(params.shape).map((key) => `\`${key}\``);
  const cells = [
    `\`${name}\``,
    does,
    on.length === 0 ? '' : on.map((each) => `\`${each}\``).join(', '),
    settings.join(', '),
    times ?? 'once',
    strikes,
  ];
  return `| ${cells.join(' | ')} |`;
}

it('docs/sandbox-faults.md has every fault', async () => {
  const sections = Object.entries(faultLayers).map(([layer, about]) => {
    const table = rows.filter(([, fault]) => fault.layer === layer).map(rowOf);
    return [
      `## ${layer}\n\n${about}\n`,
      '| fault | what happens | where | settings | how often | rule that it tests |',
      '|---|---|---|---|---|---|',
      ...table,
    ].join('\n');
  });
  const page = `# Faults of the sandbox\n\nGenerated from src/sandbox/faults/catalog/. \`sandbox.faults.arm(NAME, OPTIONS)\` arms one: at a \`provider\`, a \`route\`, an\n\`instance\` or a \`volume\`, for an \`account\`, for a number of \`times\` or \`'sticky'\`, after \`skip\` occasions, with a \`probability\` drawn\nfrom \`seed\`, \`for_ms\` milliseconds.\n\n${sections.join('\n\n')}\n`;
  await expect(page).toMatchFileSnapshot('../../../docs/sandbox-faults.md');
});
