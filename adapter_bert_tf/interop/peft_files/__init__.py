"""The files of Hugging Face's library PEFT: LoRA and (IA)^3 with their heads."""
