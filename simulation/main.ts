/** `npm run sim -- [FLAGS]` runs seeds; `npm run sim -- mutants [FLAGS]` looks for the planted faults. */
if (process.argv[2] === 'mutants') {
  process.argv.splice(2, 1);
  await import('./mutants/cli.ts');
} else await import('./cli.ts');
