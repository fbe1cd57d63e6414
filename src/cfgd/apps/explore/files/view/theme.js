// Light or dark: as the system has it, until the button says otherwise.

export function themed(button, changed) {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const show = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.ariaLabel = `${button.textContent} theme`;
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    show();
    changed();
  });
  system.addEventListener("change", () => {
    show();
    changed();
  });
  show();
}
